/**
 * Keeps a failure of one part of the page inside that part: a sentence and a way out are shown in its place. Without a
 * boundary React removes the whole page.
 */
import { Component, type ReactNode } from 'react'
import { Button } from './button.tsx'
import { PlainText } from './text/plain-text.tsx'

export interface ErrorBoundaryProps {
  /** What failed, as the subject of "... could not be shown." */
  readonly what: string
  /** Shown by "Show as text"; without it the way out is "Try again". */
  readonly text?: string
  /** Another way out, such as a button that closes. */
  readonly action?: ReactNode
  readonly children: ReactNode
}

interface BoundaryState {
  readonly hasFailed: boolean
  readonly isText: boolean
  /** A part whose program could not be loaded, as after an update of the platform, fails until the page is loaded again. */
  readonly hasRetried: boolean
}

export class ErrorBoundary extends Component<ErrorBoundaryProps, BoundaryState> {
  override state: BoundaryState = { hasFailed: false, isText: false, hasRetried: false }

  static getDerivedStateFromError(): Partial<BoundaryState> {
    return { hasFailed: true }
  }

  override render(): ReactNode {
    const { what, text, action, children } = this.props
    const { hasFailed, isText, hasRetried } = this.state
    if (!hasFailed) return children
    if (isText && text !== undefined) return <PlainText text={text} />
    return (
      <div role="alert" className="flex min-w-0 flex-wrap items-center gap-3 px-5 py-4 text-second text-soft">
        <span className="min-w-0">{what} could not be shown.</span>
        {text === undefined ? (
          <RetryButton hasRetried={hasRetried} onRetry={() => this.setState({ hasFailed: false, hasRetried: true })} />
        ) : (
          <Button onClick={() => this.setState({ isText: true })}>Show as text</Button>
        )}
        {action}
      </div>
    )
  }
}

interface RetryButtonProps {
  readonly hasRetried: boolean
  readonly onRetry: () => void
}

const RetryButton = ({ hasRetried, onRetry }: RetryButtonProps) =>
  hasRetried ? (
    <Button onClick={() => location.reload()}>Load the page again</Button>
  ) : (
    <Button onClick={onRetry}>Try again</Button>
  )
