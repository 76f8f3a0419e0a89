/**
 * The chat door: connects every stored channel and keeps it connected. Each channel runs on one platform at a time, under
 * a claim in the store, so that two platforms on one store are one bot. What a connected channel does is in `session.ts`.
 */
import { stepOf } from '../../backoff.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { createWakeUp } from '../../wait.ts'
import type { Door } from '../door.ts'
import type { ChatContext } from './chat-context.ts'
import { keepForwarding, type Outreach } from './homes/outreach.ts'
import { openSession, type Session } from './session.ts'
import type { StoredChannel } from './store/channels.ts'
import type { AnswerWebhook } from './webhook-calls.ts'

export interface ChatDoorOptions extends ChatContext {
  /** Names this process in claims. */
  readonly holder: string
  readonly outreach: Pick<Outreach, 'forward'>
}

export interface ChatDoor extends Door {
  /** A channel, a binding or a pairing changed. */
  wake(): void
  /** Undefined where no channel of this name is connected here, or it takes no webhooks. */
  findWebhook(channel: string): AnswerWebhook | undefined
}

/** A change that another platform made is noticed within this time. */
const LOOK_MS = 5000
/** A channel whose platform is gone is taken over after this time. */
const HOLD_MS = 30_000
const RETRY_MS = [2000, 5000, 15_000, 60_000] as const
/** A token that the service refuses may be accepted again: the owner clicks, and needs not restart. */
const REFUSED_RETRY_MS = 60_000
const PRUNE_MS = 3600_000

/** One stored channel: connected, being connected, or waiting for the next try. */
interface Line {
  readonly stored: StoredChannel
  readonly version: string
  readonly closing: AbortController
  readonly done: Promise<void>
  session: Session | undefined
}

export function createChatDoor(options: ChatDoorOptions): ChatDoor {
  const { channels, clock, log, holder } = options
  const closing = new AbortController()
  const wakeUp = createWakeUp()
  const lines = new Map<string, Line>()
  /** A service that does not answer holds up the end of its own channel only. */
  const ending = new Map<string, Promise<void>>()
  let loop: Promise<void> = Promise.resolve()
  const tidy = createTidy(options)

  const close = (line: Line) => {
    const { name } = line.stored
    lines.delete(name)
    const ended = endLine(line, options).finally(() => {
      ending.delete(name)
      wakeUp.wake()
    })
    ending.set(name, ended)
  }
  const look = async () => {
    const stored = await channels.list()
    for (const line of [...lines.values()]) {
      const now = stored.find(({ name }) => name === line.stored.name)
      if (now === undefined || versionOf(now) !== line.version) close(line)
    }
    for (const channel of stored) {
      if (ending.has(channel.name)) continue
      const isOurs = await channels.claim(channel.name, holder, HOLD_MS)
      const line = lines.get(channel.name)
      if (isOurs && line === undefined) lines.set(channel.name, openLine(channel, options))
      // Another platform took the channel over while this one could not reach the store.
      if (!isOurs && line !== undefined) close(line)
    }
    await tidy([...stored.map(({ name }) => name), ...ending.keys()])
  }
  const keepLooking = async () => {
    while (!closing.signal.aborted) {
      await look().catch((error) =>
        log.warn({ err: toMoleculeError(error) }, 'the channels could not be read; the door looks again'),
      )
      for (const { session } of lines.values()) session?.wake()
      await wakeUp.wait(closing.signal, (callback) => clock.after(LOOK_MS, callback))
    }
  }
  return {
    name: 'chat',
    async start() {
      loop = Promise.all([keepLooking(), keepForwarding(options, closing.signal)]).then(() => undefined)
    },
    async close() {
      closing.abort()
      await loop
      for (const line of lines.values()) close(line)
      await Promise.all(ending.values())
    },
    wake: () => wakeUp.wake(),
    findWebhook: (channel) => lines.get(channel)?.session?.webhook,
  }
}

/** Removes what channels that are gone have left, and now and then what the chat log no longer needs. */
function createTidy({ stateFolders, chatLog, clock }: ChatDoorOptions) {
  let nextPruneMs = 0
  return async (channels: readonly string[]) => {
    await stateFolders.keepOnly(channels)
    if (clock.monotonicMs() < nextPruneMs) return
    nextPruneMs = clock.monotonicMs() + PRUNE_MS
    await chatLog.prune()
  }
}

function openLine(stored: StoredChannel, options: ChatDoorOptions): Line {
  const line: Line = {
    stored,
    version: versionOf(stored),
    closing: new AbortController(),
    session: undefined,
    done: Promise.resolve()
      .then(() => keepOpen(line, options))
      .catch((error) =>
        options.log.warn({ err: toMoleculeError(error), channel: stored.name }, 'a chat channel ended badly'),
      ),
  }
  return line
}

/** Changes whenever the channel must be connected again. */
const versionOf = ({ kind, token, secrets, settings, workspaceId, createdAtMs }: StoredChannel): string =>
  JSON.stringify([kind, token, secrets, settings, workspaceId, createdAtMs])

/** Never rejects. */
async function endLine({ stored, closing, done }: Line, { channels, log, holder }: ChatDoorOptions): Promise<void> {
  closing.abort()
  await done
  await channels.release(stored.name, holder).catch((error) => {
    log.warn({ err: toMoleculeError(error), channel: stored.name }, 'a chat channel could not be released')
  })
}

/** Connects, and connects again after a failure, until the line is closed. */
async function keepOpen(line: Line, options: ChatDoorOptions): Promise<void> {
  const { channels, clock, log } = options
  const { stored, closing } = line
  const { signal } = closing
  const wait = createWakeUp()
  for (let tries = 0; !signal.aborted; tries++) {
    let delayMs = stepOf(RETRY_MS, tries)
    try {
      const session = await openSession(stored, options, signal)
      line.session = session
      tries = 0
      log.info({ channel: stored.name, account: session.account.name }, 'a chat channel is connected')
      await session.ended
    } catch (thrown) {
      if (signal.aborted) break
      const error = toMoleculeError(thrown)
      log.warn({ err: error, channel: stored.name }, 'a chat channel cannot be connected')
      const problem =
        error instanceof MoleculeError && error.code !== 'internal'
          ? error.message
          : 'it failed unexpectedly; the log says more'
      await channels.setProblem(stored.name, problem).catch(() => undefined)
      if (error.code === 'bad_config') delayMs = REFUSED_RETRY_MS
    }
    await line.session?.close()
    line.session = undefined
    await wait.wait(signal, (callback) => clock.after(delayMs, callback))
  }
  await line.session?.close()
}
