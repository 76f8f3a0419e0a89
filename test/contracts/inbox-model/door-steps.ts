/** Steps of doors: admit in every way, follow, cancel. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { Letter } from '../../../src/inbox/reception.ts'
import { letterTo } from '../../fakes/letters.ts'
import { hasCode } from '../inbox/harness.ts'
import { aliveNodes, always, command, number, pick } from './command.ts'
import {
  admit,
  cancel,
  expectAdmission,
  type InboxModel,
  isRunning,
  type ModelMessage,
  type ModelTask,
  openAsk,
} from './model.ts'
import type { ModelRun } from './model-run.ts'
import type { TestNode } from './node-cluster.ts'

/** Mostly the same principal, so that messages meet in one conversation. */
const PRINCIPALS = ['people', 'people', 'people', 'ws:other']
const CONTEXTS = ['first', 'second', 'third']

async function send(modelRun: ModelRun, node: TestNode, letter: Letter): Promise<string> {
  const verdict = expectAdmission(modelRun.model, letter)
  const answer = node.local.reception.admit(letter)
  if (verdict.type === 'refused') await assert.rejects(answer, hasCode(verdict.code))
  else if (verdict.type === 'new') admit(modelRun.model, letter, await answer)
  else {
    const { id, contextId } = verdict.of.task
    assert.deepEqual(await answer, { taskId: id, contextId, duplicate: true })
  }
  const { messageId, contextId } = letter.envelope.message
  const place = modelRun.model.workspaces.findIndex(({ id }) => id === letter.workspaceId)
  const address = `workspace ${place}, ${letter.principal}, ${contextId ?? 'its task'}`
  return `${messageId} (${address}) by ${node.name}: ${verdict.type}`
}

const nextId = ({ messages }: InboxModel) => `m${messages.size + 1}`

export const admitNew = command({
  name: 'admit',
  choice: fc.record({ node: number, workspace: number, principal: number, context: number, named: fc.boolean() }),
  possible: always,
  run(modelRun, { node, workspace, principal, context, named }) {
    const messageId = nextId(modelRun.model)
    const letter = letterTo(pick(modelRun.model.workspaces, workspace).id, {
      principal: pick(PRINCIPALS, principal),
      contextId: pick(CONTEXTS, context),
      messageId,
      ...(named && { idempotencyKey: messageId }),
    })
    return send(modelRun, pick(aliveNodes(modelRun), node), letter)
  },
})

type Change = 'nothing' | 'text' | 'principal' | 'workspace'

export const admitAgain = command({
  name: 'admit again',
  choice: fc.record({
    node: number,
    which: number,
    change: fc.constantFrom<Change>('nothing', 'text', 'principal', 'workspace'),
  }),
  possible: ({ messages }) => messages.size > 0,
  run(modelRun, { node, which, change }) {
    const { letter } = pick([...modelRun.model.messages.values()], which)
    return send(modelRun, pick(aliveNodes(modelRun), node), changed(modelRun.model, letter, change))
  },
})

function changed({ workspaces }: InboxModel, letter: Letter, change: Change): Letter {
  const { idempotencyKey, envelope } = letter
  const { messageId, contextId, taskId, parts } = envelope.message
  const elsewhere = workspaces.find(({ id }) => id !== letter.workspaceId)?.id ?? ''
  const stranger = PRINCIPALS.find((name) => name !== letter.principal) ?? ''
  return letterTo(change === 'workspace' ? elsewhere : letter.workspaceId, {
    messageId,
    text: change === 'text' ? 'other text' : (parts[0]?.text ?? ''),
    principal: change === 'principal' ? stranger : letter.principal,
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
}

const hasTask = ({ tasks }: InboxModel) => tasks.size > 0

/** A task with a matching message; any task where none matches. */
function chooseTask({ model }: ModelRun, index: number, matches?: (message: ModelMessage) => unknown): ModelTask {
  const tasks = [...model.tasks.values()]
  const some = matches === undefined ? [] : tasks.filter(({ messages }) => messages.some(matches))
  return pick(some.length > 0 ? some : tasks, index)
}

const nameTask = ({ messages }: ModelTask) => `the task of ${messages[0]?.letter.envelope.message.messageId}`

/** Another message to a task: its next turn, or the answer to a question of its turn. */
export const continueTask = command({
  name: 'continue',
  choice: fc.record({ node: number, task: number, answer: fc.boolean() }),
  possible: hasTask,
  async run(modelRun, choice) {
    const task = chooseTask(modelRun, choice.task, choice.answer ? openAsk : undefined)
    const { workspaceId, principal } = task.letter
    const letter = letterTo(workspaceId, { principal, taskId: task.id, messageId: nextId(modelRun.model) })
    return `${nameTask(task)} with ${await send(modelRun, pick(aliveNodes(modelRun), choice.node), letter)}`
  },
})

export const cancelTask = command({
  name: 'cancel',
  choice: fc.record({ node: number, task: number, running: fc.boolean() }),
  possible: hasTask,
  async run(modelRun, choice) {
    const node = pick(aliveNodes(modelRun), choice.node)
    const task = chooseTask(modelRun, choice.task, choice.running ? isRunning : undefined)
    const answer = node.local.reception.cancel(task.id)
    const verdict = cancel(task)
    if (verdict === 'canceled') assert.equal((await answer).status.state, 'TASK_STATE_CANCELED')
    else await assert.rejects(answer, hasCode(verdict))
    return `${nameTask(task)} by ${node.name}: ${verdict}`
  },
})

/** A reader starts here and follows during all later steps. */
export const followTask = command({
  name: 'follow',
  choice: fc.record({ node: number, task: number }),
  possible: hasTask,
  async run(modelRun, choice) {
    const node = pick(aliveNodes(modelRun), choice.node)
    const task = chooseTask(modelRun, choice.task)
    const stop = new AbortController()
    const seqs: number[] = []
    const read = async () => {
      for await (const { seq } of node.local.reception.follow(task.id, { afterSeq: 0 }, stop.signal)) seqs.push(seq)
    }
    modelRun.followers.push({ task, node, seqs, stop, ended: read() })
    return `${nameTask(task)} by ${node.name}`
  },
})
