/**
 * What an agent is told where it may say nothing: in a group, where people also talk to each other, and for a schedule that
 * reports to a chat. The settle that stores the answer decides by the reply address (`inbox/rows/delivery.ts`).
 */
import type { Metadata } from '../a2a.ts'
import { isJsonObject } from '../json.ts'
import type { Sender } from '../request.ts'

const INSTRUCTION =
  'Your answer goes to a chat. If there is nothing to say, answer exactly NO_REPLY and nothing else: then nothing is sent.'

/** Empty for other messages. Only of a sender with a channel did the platform write `metadata.chat`. */
export function silenceInstruction(metadata: Metadata | undefined, { kind, channel }: Sender): string {
  const [chat, schedule] = [metadata?.['chat'], metadata?.['schedule']]
  const isGroup = channel !== undefined && isJsonObject(chat) && chat['is_direct'] !== true
  const isReport = kind === 'schedule' && isJsonObject(schedule) && schedule['reports'] === true
  return isGroup || isReport ? INSTRUCTION : ''
}
