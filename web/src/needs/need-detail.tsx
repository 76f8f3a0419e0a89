/** What a person must see before deciding. A command is never cut. */
import type { NeedView } from '../../../src/client/needs.ts'
import { printable } from '../../../src/printable.ts'
import { asSentence, plainReason } from '../api/sentence.ts'
import { CopyButton } from '../ui/text/code-block.tsx'
import { Markdown } from '../ui/text/markdown.tsx'
import { commandIn } from './need-text.ts'

export function NeedDetail({ need }: { readonly need: NeedView }) {
  const { kind, permission, text, to, reason } = need
  if (kind === 'permission') return permission?.subject ? <Command text={permission.subject} /> : null
  const command = kind === 'login' ? commandIn(reason) : undefined
  return (
    <>
      {text === undefined ? null : <NeedText kind={kind} text={text} />}
      {to === undefined || kind === 'pairing' ? null : <p className="text-second text-soft">To {to}</p>}
      {kind === 'question' && text !== undefined ? null : (
        <p className="break-words text-second text-soft">{asSentence(plainReason(reason))}</p>
      )}
      {command === undefined ? null : (
        <div className="flex items-start gap-2">
          <div className="min-w-0 flex-1">
            <Command text={command} />
          </div>
          <CopyButton text={command} />
        </div>
      )}
    </>
  )
}

/** What an agent has written is Markdown; what a person has written is shown as it is. */
function NeedText({ kind, text }: { readonly kind: NeedView['kind']; readonly text: string }) {
  if (kind === 'question' || kind === 'delivery') return <Markdown text={text} />
  return (
    <p dir="auto" className="whitespace-pre-wrap break-words text-second">
      “{text}”
    </p>
  )
}

const Command = ({ text }: { readonly text: string }) => (
  <pre className="whitespace-pre-wrap break-words rounded-button border border-line bg-raised px-3 py-2 font-mono text-second">
    {printable(text)}
  </pre>
)
