/**
 * A small editor: line numbers, keys of YAML in colour, and each problem at its line. The text lies in a transparent
 * textarea over a drawn copy of it, so the browser's own editing, undo and screen reader support stay.
 */
import { type KeyboardEvent, useId, useRef } from 'react'
import type { FileProblem } from '../../../../src/client/platform-failure.ts'
import { classNames } from '../../ui/class-names.ts'

export interface EditorProps {
  readonly label: string
  readonly text: string
  readonly onChange: (text: string) => void
  readonly problems: readonly FileProblem[]
  /** YAML has line numbers and does not wrap; a text wraps. */
  readonly kind: 'yaml' | 'text'
  readonly onSave: () => void
  /** What an empty file is for. */
  readonly placeholder?: string | undefined
}

const TEXT_LOOK = 'font-mono text-second leading-5 [tab-size:2]'

export function Editor({ label, text, onChange, problems, kind, onSave, placeholder }: EditorProps) {
  const id = useId()
  const area = useRef<HTMLTextAreaElement>(null)
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key.toLowerCase() !== 's' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    onSave()
  }
  const goToLine = (line: number) => {
    const start =
      text
        .split('\n')
        .slice(0, line - 1)
        .join('\n').length + (line > 1 ? 1 : 0)
    area.current?.focus()
    area.current?.setSelectionRange(start, start)
  }
  return (
    <>
      <div className="relative flex overflow-x-auto py-3">
        {kind === 'yaml' ? <LineNumbers text={text} problems={problems} /> : null}
        <div className={classNames('relative grow', kind === 'yaml' ? 'min-w-max' : 'min-w-0')}>
          <DrawnText text={text} kind={kind} problems={problems} />
          <textarea
            ref={area}
            aria-label={label}
            aria-invalid={problems.length > 0}
            aria-describedby={`${id}-problems`}
            spellCheck={kind === 'text'}
            autoCapitalize="off"
            autoComplete="off"
            value={text}
            placeholder={placeholder}
            onChange={(event) => onChange(event.target.value)}
            onKeyDown={onKeyDown}
            wrap={kind === 'yaml' ? 'off' : 'soft'}
            className={classNames(
              TEXT_LOOK,
              'absolute inset-0 resize-none overflow-hidden bg-transparent px-4 text-transparent caret-ink outline-none',
              kind === 'yaml' ? 'whitespace-pre' : 'whitespace-pre-wrap break-words',
            )}
          />
        </div>
      </div>
      <ul id={`${id}-problems`} aria-live="polite" className="border-line border-t px-4 py-2 text-second empty:hidden">
        {problems.map(({ line, column, message }) => (
          <li key={`${line}:${column} ${message}`}>
            <button
              type="button"
              onClick={() => goToLine(line)}
              className="rounded-tag py-0.5 text-left text-needs underline-offset-2 hover:underline max-md:min-h-10"
            >
              Line {line}: {message}
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}

const linesOf = (text: string) => text.split('\n').map((line, index) => ({ number: index + 1, line }))

function LineNumbers({ text, problems }: { readonly text: string; readonly problems: readonly FileProblem[] }) {
  const wrong = new Set(problems.map(({ line }) => line))
  return (
    <div
      aria-hidden="true"
      className={classNames(TEXT_LOOK, 'sticky left-0 z-10 w-11 shrink-0 select-none bg-surface text-right')}
    >
      {linesOf(text).map(({ number }) => (
        <div
          key={number}
          className={
            wrong.has(number)
              ? 'border-needs border-l-3 bg-needs-soft pr-3 font-[650] text-needs'
              : 'pr-3 pl-[3px] text-faint'
          }
        >
          {number}
        </div>
      ))}
    </div>
  )
}

interface DrawnTextProps {
  readonly text: string
  readonly kind: EditorProps['kind']
  readonly problems: readonly FileProblem[]
}

/** The last line always has a height, so that the textarea over it has room for the caret. */
function DrawnText({ text, kind, problems }: DrawnTextProps) {
  if (kind === 'text') {
    return (
      <div aria-hidden="true" className={classNames(TEXT_LOOK, 'min-h-30 whitespace-pre-wrap break-words px-4')}>
        {`${text}\n`}
      </div>
    )
  }
  const byLine = Map.groupBy(problems, ({ line }) => line)
  return (
    <div aria-hidden="true" className={classNames(TEXT_LOOK, 'whitespace-pre')}>
      {linesOf(text).map(({ number, line }) => (
        <DrawnLine key={number} line={line} problem={byLine.get(number)?.[0]} />
      ))}
    </div>
  )
}

function DrawnLine({ line, problem }: { readonly line: string; readonly problem: FileProblem | undefined }) {
  if (problem === undefined) return <div className="min-h-5 px-4">{drawYaml(line)}</div>
  const from = Math.min(problem.column - 1, line.length)
  return (
    <div data-problem-line={problem.line} className="min-h-5 bg-needs-soft px-4">
      {drawYaml(line.slice(0, from))}
      <span className="text-needs underline decoration-wavy underline-offset-4">{line.slice(from)}</span>
      <span className="pl-6 font-sans text-needs">{withoutKey(problem.message)}</span>
    </div>
  )
}

/** At the line itself the key stands already: `"5 minutes" is not a positive duration`. */
const withoutKey = (message: string): string => message.replace(/^(backend option "[^"]*"|[\w.]+): /, '')

function drawYaml(line: string) {
  const [, indent = '', key, rest = ''] = /^(\s*(?:- )?)([\w.-]+)(:(?:\s.*)?)$/.exec(line) ?? []
  const text = key === undefined ? line : rest
  const at = text.startsWith('#') ? 0 : text.search(/\s#/)
  const [value, comment] = at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at)]
  return (
    <>
      {indent}
      {key === undefined ? null : <span className="text-accent">{key}</span>}
      {value}
      {comment === '' ? null : <span className="text-faint">{comment}</span>}
    </>
  )
}
