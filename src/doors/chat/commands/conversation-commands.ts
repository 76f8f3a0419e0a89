/** Commands for the conversation of a chat: /new, /stop, /status. */
import { isFinal } from '../../../protocol/a2a.ts'
import { findAgent, NO_AGENT, sayTo } from './agent.ts'
import type { BotCommand } from './command.ts'

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
