/** What doors do: admit in every way there is, follow, cancel. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Letter } from '../../../src/inbox/inbox.ts'
import { letterTo } from '../../fakes/letters.ts'
import { code } from '../inbox/harness.ts'
import { always, at, command, living, number } from './command.ts'
import type { Game } from './game.ts'
import { admit, cancel, isRunning, judge, type Message, type Model, openQuestion, type Task } from './model.ts'
import type { Node } from './world.ts'

/** Mostly one and the same, so that messages meet. */
const PRINCIPALS = ['people', 'people', 'people', 'ws:other']
const CONTEXTS = ['first', 'second', 'third']

async function send(game: Game, node: Node, letter: Letter): Promise<string> {
  const verdict = judge(game.model, letter)
  const answer = node.local.reception.admit(letter)
  if (verdict.type === 'refused') await assert.rejects(answer, code(verdict.code))
  else if (verdict.type === 'new') admit(game.model, letter, await answer)
  else {
    const { id, contextId } = verdict.of.task
    assert.deepEqual(await answer, { taskId: id, contextId, duplicate: true })
  }
  const { messageId, contextId } = letter.envelope.message
  const place = game.model.workspaces.findIndex(({ id }) => id === letter.workspaceId)
  const address = `workspace ${place}, ${letter.principal}, ${contextId ?? 'its task'}`
  return `${messageId} (${address}) by ${node.name}: ${verdict.type}`
}

const nextId = ({ messages }: Model) => `m${messages.size + 1}`

export const admitNew = command({
  name: 'admit',
  choice: fc.record({ node: number, workspace: number, principal: number, context: number }),
  possible: always,
  run(game, { node, workspace, principal, context }) {
    const letter = letterTo(at(game.model.workspaces, workspace).id, {
      principal: at(PRINCIPALS, principal),
      contextId: at(CONTEXTS, context),
      messageId: nextId(game.model),
    })
    return send(game, at(living(game), node), letter)
  },
})

type Change = 'nothing' | 'words' | 'principal' | 'workspace'

export const admitAgain = command({
  name: 'admit again',
  choice: fc.record({
    node: number,
    which: number,
    change: fc.constantFrom<Change>('nothing', 'words', 'principal', 'workspace'),
  }),
  possible: ({ messages }) => messages.size > 0,
  run(game, { node, which, change }) {
    const { letter } = at([...game.model.messages.values()], which)
    return send(game, at(living(game), node), changed(game.model, letter, change))
  },
})

function changed({ workspaces }: Model, letter: Letter, change: Change): Letter {
  const { messageId, contextId, taskId, parts } = letter.envelope.message
  const elsewhere = workspaces.find(({ id }) => id !== letter.workspaceId)?.id ?? ''
  const stranger = PRINCIPALS.find((name) => name !== letter.principal) ?? ''
  return letterTo(change === 'workspace' ? elsewhere : letter.workspaceId, {
    messageId,
    text: change === 'words' ? 'other words' : (parts[0]?.text ?? ''),
    principal: change === 'principal' ? stranger : letter.principal,
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
  })
}

const hasTask = ({ tasks }: Model) => tasks.size > 0

/** One with such a message if there is any, or else any. */
function chooseTask({ model }: Game, index: number, such?: (message: Message) => unknown): Task {
  const tasks = [...model.tasks.values()]
  const some = such === undefined ? [] : tasks.filter(({ messages }) => messages.some(such))
  return at(some.length > 0 ? some : tasks, index)
}

const nameTask = ({ messages }: Task) => `the task of ${messages[0]?.letter.envelope.message.messageId}`

/** Another message to a task: its next turn, or the answer to what its turn asks. */
export const continueTask = command({
  name: 'continue',
  choice: fc.record({ node: number, task: number, answer: fc.boolean() }),
  possible: hasTask,
  async run(game, choice) {
    const task = chooseTask(game, choice.task, choice.answer ? openQuestion : undefined)
    const { workspaceId, principal } = task.letter
    const letter = letterTo(workspaceId, { principal, taskId: task.id, messageId: nextId(game.model) })
    return `${nameTask(task)} with ${await send(game, at(living(game), choice.node), letter)}`
  },
})

export const cancelTask = command({
  name: 'cancel',
  choice: fc.record({ node: number, task: number, running: fc.boolean() }),
  possible: hasTask,
  async run(game, choice) {
    const node = at(living(game), choice.node)
    const task = chooseTask(game, choice.task, choice.running ? isRunning : undefined)
    const answer = node.local.reception.cancel(task.id)
    const verdict = cancel(task)
    if (verdict === 'canceled') assert.equal((await answer).status.state, 'TASK_STATE_CANCELED')
    else await assert.rejects(answer, code(verdict))
    return `${nameTask(task)} by ${node.name}: ${verdict}`
  },
})

/** A reader begins here and goes on beside all that follows. */
export const followTask = command({
  name: 'follow',
  choice: fc.record({ node: number, task: number }),
  possible: hasTask,
  async run(game, choice) {
    const node = at(living(game), choice.node)
    const task = chooseTask(game, choice.task)
    const stop = new AbortController()
    const seqs: number[] = []
    const read = async () => {
      for await (const { seq } of node.local.reception.follow(task.id, 0, stop.signal)) seqs.push(seq)
    }
    game.followers.push({ task, node, seqs, stop, ended: read() })
    return `${nameTask(task)} by ${node.name}`
  },
})
