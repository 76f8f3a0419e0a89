/** The tabs of the side panel, in their order. Each has a folder here; add a tab with one entry. */
import { lazy } from 'react'
import type { PanelTab } from './tab.ts'

const Chat = lazy(async () => ({ default: (await import('./chat/chat.tsx')).Chat }))
const Activity = lazy(async () => ({ default: (await import('./activity/activity.tsx')).Activity }))
const Delegations = lazy(async () => ({ default: (await import('./delegations/delegations.tsx')).Delegations }))
const Memory = lazy(async () => ({ default: (await import('./memory/memory.tsx')).Memory }))
const Config = lazy(async () => ({ default: (await import('./config/config.tsx')).Config }))
const Usage = lazy(async () => ({ default: (await import('./usage/usage.tsx')).Usage }))
const Details = lazy(async () => ({ default: (await import('./details/details.tsx')).Details }))

export const TABS: readonly PanelTab[] = [
  { id: 'chat', title: 'Chat', content: Chat },
  { id: 'activity', title: 'Activity', content: Activity, action: 'activity.read', isWide: true },
  { id: 'delegations', title: 'Delegations', content: Delegations, action: 'activity.read', isWide: true },
  { id: 'memory', title: 'Memory', content: Memory, action: 'memory.read' },
  { id: 'config', title: 'Config', content: Config, action: 'schedule.read', isWide: true },
  { id: 'usage', title: 'Usage', content: Usage, action: 'activity.read' },
  { id: 'details', title: 'Details', content: Details },
]
