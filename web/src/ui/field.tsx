/** A labelled field. The error stands under the field and says what to write. */
import { type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes, useId } from 'react'
import { classNames } from './class-names.ts'

interface FieldFrameProps {
  readonly label: string
  readonly error?: string | undefined
  /** A sentence under the field while there is no error. */
  readonly hint?: ReactNode
  /** The label is only for screen readers. */
  readonly hideLabel?: boolean
}

export type FieldProps = FieldFrameProps & Omit<InputHTMLAttributes<HTMLInputElement>, 'id'>
export type TextAreaProps = FieldFrameProps & Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, 'id'>

const LOOK =
  'w-full rounded-button border bg-surface px-3 text-body text-ink max-md:text-title disabled:opacity-50 focus-visible:outline-offset-0'

export function Field({ label, error, hint, hideLabel, className, ...rest }: FieldProps) {
  const id = useId()
  return (
    <FieldFrame id={id} label={label} error={error} hint={hint} hideLabel={hideLabel}>
      <input
        id={id}
        dir="auto"
        aria-invalid={error !== undefined}
        aria-describedby={`${id}-note`}
        className={classNames(LOOK, 'h-9 max-md:h-11', error === undefined ? 'border-edge' : 'border-needs', className)}
        {...rest}
      />
    </FieldFrame>
  )
}

export function TextArea({ label, error, hint, hideLabel, className, ...rest }: TextAreaProps) {
  const id = useId()
  return (
    <FieldFrame id={id} label={label} error={error} hint={hint} hideLabel={hideLabel}>
      <textarea
        id={id}
        dir="auto"
        aria-invalid={error !== undefined}
        aria-describedby={`${id}-note`}
        className={classNames(LOOK, 'block py-2', error === undefined ? 'border-edge' : 'border-needs', className)}
        {...rest}
      />
    </FieldFrame>
  )
}

type FrameProps = {
  readonly id: string
  readonly label: string
  readonly error: string | undefined
  readonly hint: ReactNode
  readonly hideLabel: boolean | undefined
  readonly children: ReactNode
}

function FieldFrame({ id, label, error, hint, hideLabel, children }: FrameProps) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className={hideLabel ? 'sr-only' : 'font-[550] text-second'}>
        {label}
      </label>
      {children}
      {error === undefined && !hint ? null : (
        <div id={`${id}-note`} className="text-time">
          {error === undefined ? (
            <span className="text-faint">{hint}</span>
          ) : (
            <span role="alert" className="text-needs">
              {error}
            </span>
          )}
        </div>
      )}
    </div>
  )
}
