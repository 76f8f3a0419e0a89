/** A diff of a file. */
import { classNames } from '../class-names.ts'

/** A diff with its added and removed lines in colour. The signs stay, so that it reads without colours too. */
export function DiffText({ diff }: { readonly diff: string }) {
  return (
    <pre className="mt-1 overflow-x-auto rounded-button border border-line bg-raised py-1.5 font-mono">
      {diff.split('\n').map((line, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a diff do not move.
        <span key={index} className={classNames('block px-2.5', lookOf(line))}>
          {line || ' '}
        </span>
      ))}
    </pre>
  )
}

function lookOf(line: string): string | false {
  if (/^(\+\+\+|---|@@|diff )/.test(line)) return 'text-faint'
  if (line.startsWith('+')) return 'bg-ok-soft text-ok-ink'
  return line.startsWith('-') && 'text-soft line-through decoration-edge'
}
