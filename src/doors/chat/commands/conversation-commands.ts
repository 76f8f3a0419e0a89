/** Commands for the conversation of a chat: /new, /sessions, /stop, /retry, /status. */
import { isFinal } from '../../../protocol/a2a.ts'
import { readSessions } from '../../../views/conversations.ts'
import { chatPrincipal } from '../store/channels.ts'
import { findAgent, NO_AGENT, sayTo } from './agent.ts'
import type { BotCommand, BotCommandContext, CommandInput } from './command.ts'
import { retryLast } from './retry.ts'

export const CONVERSATION_COMMANDS: readonly BotCommand[] = [
  {
    name: 'new',
    text: 'begin a new conversation: the agent forgets what was said here',
    action: () => 'message.send',
    async run({ place }, { chatLog, stored }) {
      await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
      await chatLog.newContext({ channel: stored.name, place: place.id })
      return 'A new conversation begins: the agent no longer knows what was said before.'
    },
  },
  {
    name: 'sessions',
    text: 'list the conversations of this chat, or go back to one',
    argument: 'number',
    action: () => 'message.send',
    run: runSessions,
  },
  {
    name: 'stop',
    text: 'stop what the agent does for this chat',
    action: () => 'task.cancel',
    async run({ place }, { chatLog, reception, stored }) {
      const here = await chatLog.openIn({ channel: stored.name, place: place.id })
      let stopped = 0
      for (const taskId of new Set(here.map((message) => message.taskId))) {
        if (taskId === undefined) continue
        const state = (await reception.task(taskId, { historyLength: 0, artifacts: false }))?.status.state
        if (state === undefined || isFinal(state)) continue
        await reception.cancel(taskId)
        stopped += 1
      }
      if (stopped === 0) return 'Nothing runs for this chat.'
      return stopped === 1 ? 'Stopped.' : `Stopped ${stopped} tasks.`
    },
  },
  {
    name: 'retry',
    text: 'run the last message again when it failed or was stopped',
    action: () => 'dead-letter.handle',
    run: retryLast,
  },
  {
    name: 'status',
    text: 'show what the agent is doing',
    action: () => 'workspace.read',
    async run({ place, standing }, context) {
      const { chatLog, reception, stored } = context
      const workspace = await findAgent(place, context)
      if (workspace === undefined) return NO_AGENT
      const here = await chatLog.openIn({ channel: stored.name, place: place.id })
      const states = await Promise.all(
        here.map(
          async ({ taskId = '' }) => (await reception.task(taskId, { historyLength: 0, artifacts: false }))?.status,
        ),
      )
      const running = states.filter((status) => status !== undefined && !isFinal(status.state)).length
      const shown = sayTo({ place, standing }, workspace.statusReason ?? '')
      const reason = shown === '' ? '' : ` (${shown})`
      const load = `${workspace.running} running and ${workspace.queueDepth} waiting in all`
      return `**${workspace.name}** is ${workspace.status}${reason}: ${running} of this chat, ${load}.`
    },
  },
]

const SESSIONS_LISTED_MAX = 10

/** Without an argument the list; with a number of it, or an id, the conversation that goes on from now on. */
async function runSessions({ place, argument }: CommandInput, context: BotCommandContext): Promise<string> {
  const { chatLog, stored, store } = context
  const workspace = await findAgent(place, context)
  if (workspace === undefined) return NO_AGENT
  const key = { channel: stored.name, place: place.id }
  const { contextId } = await chatLog.place(key, JSON.stringify(place))
  const principal = chatPrincipal(stored.name, place.id)
  const sessions = await readSessions(store, { workspaceId: workspace.id, principal, limit: SESSIONS_LISTED_MAX })
  if (sessions.length === 0) return 'This chat has no conversation yet: your next message begins one.'
  if (argument !== '') {
    const chosen = sessions.find(
      (session, at) => argument === String(at + 1) || argument === shortId(session.contextId),
    )
    if (chosen === undefined) return 'There is no such conversation; `/sessions` lists them.'
    await chatLog.setContext(key, chosen.contextId)
    return `Your next message goes on with: ${quote(chosen.firstWords)}`
  }
  const lines = sessions.map((session, at) => {
    const here = session.contextId === contextId ? ' (this one)' : ''
    return `${at + 1}. \`${shortId(session.contextId)}\` ${session.atText}: ${quote(session.firstWords)}${here}`
  })
  return `${lines.join('\n')}\n\n\`/sessions <number>\` goes back to one, \`/new\` begins one.`
}

/** The end of an id: its beginning is its time, and many have the same. */
const shortId = (contextId: string): string => contextId.slice(-6).toLowerCase()

/** As code, so that a text is shown as it was written. */
const quote = (text: string): string => `\`${text.replaceAll('`', "'")}\``
