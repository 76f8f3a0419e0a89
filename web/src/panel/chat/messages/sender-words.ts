/** Who sent a message, in words. Pure. */
import { printableName } from '../../../../../src/printable.ts'

export interface SenderWords {
  readonly name: string
  readonly verb: string
}

export function senderWords(sender: { readonly kind: string; readonly name: string } | undefined): SenderWords {
  if (sender === undefined) return { name: 'A sender', verb: 'wrote' }
  const { kind } = sender
  const name = printableName(sender.name)
  if (kind === 'agent') return { name, verb: 'asked' }
  if (kind === 'schedule') return { name: `Schedule “${name}”`, verb: 'sent' }
  return { name, verb: 'wrote' }
}
