/**
 * Invitations: the bot joins when a person who is let in invites it. Other invitations wait, and the list of channels says so,
 * until the owner has decided about the person. Invariant: a stranger cannot bring the bot into a room.
 */
import { toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { printableName } from '../../printable.ts'
import type { ChannelEvents } from '../chat/channel.ts'
import { type MatrixApi, path } from './matrix-api.ts'
import { listOf, type MatrixJson, objectOf, textOf } from './matrix-json.ts'
import { localpart } from './matrix-rooms.ts'

/** More are left alone until one of these is decided. */
const WAITING_MAX = 100
const JOIN_TRIES_MAX = 5

interface Invitation {
  readonly inviter: string
  readonly name: string
  tries: number
}

export interface InvitesOptions {
  readonly api: MatrixApi
  readonly events: Pick<ChannelEvents, 'invited'>
  readonly me: string
  readonly log: Log
  /** One sentence; undefined: no invitation waits. */
  readonly problem: (sentence: string | undefined) => void
}

export interface Invites {
  /** The invitations of one sync. */
  take(invited: MatrixJson): void
  remove(roomId: string): void
  /** Decides about those that wait. Never rejects; does nothing while it is at work. */
  decide(signal: AbortSignal): Promise<void>
}

export function createInvites({ api, events, me, log, problem }: InvitesOptions): Invites {
  const waiting = new Map<string, Invitation>()
  let isDeciding = false
  const decideOne = async (roomId: string, invitation: Invitation, signal: AbortSignal) => {
    const author = { id: invitation.inviter, name: invitation.name, isBot: false }
    const decision = (await events.invited?.(author)) ?? 'wait'
    if (decision === 'wait') return
    const verb = decision === 'join' ? 'join' : 'leave'
    try {
      await api.call({ method: 'POST', path: path`/client/v3/rooms/${roomId}/` + verb, body: {} }, signal)
      waiting.delete(roomId)
    } catch (error) {
      invitation.tries += 1
      log.warn({ err: toMoleculeError(error), tries: invitation.tries }, 'an invitation to a Matrix room failed')
      if (invitation.tries >= JOIN_TRIES_MAX) waiting.delete(roomId)
    }
  }
  return {
    take(invited) {
      for (const [roomId, value] of Object.entries(invited)) {
        const invitation = invitationOf(objectOf(value), me)
        if (invitation === undefined || waiting.has(roomId) || waiting.size >= WAITING_MAX) continue
        waiting.set(roomId, invitation)
        log.info({ room: roomId, inviter: invitation.inviter }, 'a Matrix bot was invited to a room')
      }
    },
    remove: (roomId) => void waiting.delete(roomId),
    async decide(signal) {
      if (isDeciding || waiting.size === 0) return
      isDeciding = true
      try {
        for (const [roomId, invitation] of [...waiting]) {
          if (!signal.aborted) await decideOne(roomId, invitation, signal)
        }
      } catch (error) {
        log.warn({ err: toMoleculeError(error) }, 'the invitations of a Matrix bot could not be decided')
      } finally {
        isDeciding = false
      }
      const [first] = waiting.values()
      problem(first && waitingSentence(first.inviter))
    },
  }
}

const waitingSentence = (inviter: string): string =>
  `${printableName(inviter)} invited the bot to a room, and the bot does not know this person: let the person in ("molecule pair list" shows the code), or ignore it.`

/** Who wrote the membership of the bot. Events of a room that the bot is not in have no ids. */
function invitationOf(room: MatrixJson, me: string): Invitation | undefined {
  const state = listOf(objectOf(room['invite_state'])['events']).map(objectOf)
  const own = state.find((event) => event['type'] === 'm.room.member' && event['state_key'] === me)
  const inviter = textOf(own?.['sender'])
  if (inviter === undefined || inviter.length > 255) return undefined
  const member = state.find((event) => event['type'] === 'm.room.member' && event['state_key'] === inviter)
  const name = textOf(objectOf(member?.['content'])['displayname'])?.slice(0, 100)
  return { inviter, name: name ?? localpart(inviter), tries: 0 }
}
