/** What a tab of the side panel is. */
import type { ComponentType, LazyExoticComponent } from 'react'
import type { WorkspaceSummary } from '../../../src/client/views.ts'

export interface TabProps {
  readonly workspace: WorkspaceSummary
}

export interface PanelTab {
  readonly id: string
  readonly title: string
  /** A heavy tab is `lazy(() => import(...))`: it becomes a chunk of its own. */
  readonly content: ComponentType<TabProps> | LazyExoticComponent<ComponentType<TabProps>>
  /** The action that the session needs to see the tab; absent = every session sees it. */
  readonly action?: string
  /** The panel takes most of the width: the tab has two columns. */
  readonly isWide?: boolean
}
