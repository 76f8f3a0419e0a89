/**
 * The tools of delegation. A delegation is a task of the peer: durable, found by its id, with the turn of the caller's
 * token as its parent. `delegate_task` follows the task without a time limit of its own. A call that breaks off loses
 * only the wait, never the task.
 */

import { z } from 'zod'
import { withRetries } from '../../client/retry.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import type { Admitted, Letter } from '../../inbox/reception.ts'
import { isFinal, isInterrupted, type Task, taskEndText } from '../../protocol/a2a.ts'
import { COST_USD_MAX, withBudget } from '../../protocol/delegation.ts'
import { DELEGATION_ERROR_PREFIX, delegationFailureText } from '../../protocol/delegation-failure.ts'
import { envelopeOf } from '../../protocol/envelope.ts'
import { readTaskWork } from '../../views/task-work.ts'
import { sleep } from '../../wait.ts'
import { parentOf } from '../parent-of.ts'
import { answerText, firstPage, pagesOf, stateName, statusText } from './task-result.ts'
import { jsonResult, type ToolCall, type ToolResult, tool } from './tool.ts'
import { findPeer, PEERS_MAX, WORKSPACE_CHARACTERS_MAX } from './workspace-tools.ts'

const TASK_CHARACTERS_MAX = 1_000_000
const ID_CHARACTERS_MAX = 128
const PAGES_MAX = 100_000
/** The list of tasks without an id. */
const LISTED_MAX = 20
const TASK_SHOWN_CHARACTERS_MAX = 200
/** How often a waiting call reports progress: clients end a silent call after 60 to 600 s. */
const REPORT_EVERY_MS = 15_000
/** A paused or offline peer answers a wait at once. It is asked this often, and for this long. */
const UNAVAILABLE_POLL_MS = 1_000
const UNAVAILABLE_MS_MAX = 30_000

const delegateInput = z.object({
  workspace_id: z.string().min(1).max(WORKSPACE_CHARACTERS_MAX).describe('id or name of the peer, from list_peers'),
  task: z.string().trim().min(1).max(TASK_CHARACTERS_MAX).describe('what to do, with everything the peer must know'),
  task_id: z
    .string()
    .max(ID_CHARACTERS_MAX)
    .optional()
    .describe('only to answer a question of the peer: the id of the task that waits for the answer'),
  max_cost_usd: z
    .number()
    .positive()
    .max(COST_USD_MAX)
    .optional()
    .describe('what the task may cost, in US dollars; your own budget counts anyway'),
})

type DelegateInput = z.output<typeof delegateInput>

export const delegationTools = [
  tool({
    name: 'delegate_task',
    access: 'message.send',
    description: `Gives a task to a peer and returns its answer, however long it takes. A result that begins with ${DELEGATION_ERROR_PREFIX} is a failure and no answer.`,
    input: delegateInput,
    readOnly: false,
    run: (input, call) => orFailure(input, call, () => delegateAndWait(input, call)),
  }),
  tool({
    name: 'delegate_task_async',
    access: 'message.send',
    description:
      'Gives a task to a peer and returns at once with its task_id. check_task_status shows the result. A result that you have not read when your turn ends is sent to you as a message.',
    input: delegateInput,
    readOnly: false,
    run: (input, call) =>
      orFailure(input, call, async () => {
        const { taskId } = await call.wait((signal) => admit(input, call, signal))
        return jsonResult({ task_id: taskId, state: 'submitted' })
      }),
  }),
  tool({
    name: 'check_task_status',
    access: 'task.read',
    description:
      'Shows the state of a task that you delegated, and its result once there is one. Long results have pages. Without task_id it lists the last tasks that you delegated.',
    input: z.object({
      task_id: z.string().min(1).max(ID_CHARACTERS_MAX).optional(),
      page: z.int().min(1).max(PAGES_MAX).default(1).describe('the page of a long result'),
    }),
    readOnly: true,
    async run({ task_id: id, page }, call) {
      if (id === undefined) return jsonResult({ tasks: await listOwnTasks(call) })
      const task = await findOwnTask(id, call)
      const pages = pagesOf(answerText(task))
      const text = pages[page - 1]
      if (text === undefined) throw new MoleculeError('invalid_request', `the result has ${pages.length} pages`)
      await call.reception.markRead(task, call.identity, call.response)
      const head = { task_id: id, state: stateName(task), ...(pages.length > 1 && { page, pages: pages.length }) }
      return { text: `${JSON.stringify(head)}\n\n${text}` }
    },
  }),
]

/** Runs a delegation; whatever keeps it from its answer becomes the text that offers other ways. */
async function orFailure(
  { workspace_id: workspace }: DelegateInput,
  call: ToolCall,
  delegate: () => Promise<ToolResult>,
): Promise<ToolResult> {
  try {
    return await delegate()
  } catch (thrown) {
    return failureResult(workspace, call.refuse(thrown))
  }
}

const failureResult = (workspace: string, reason: string, taskId?: string): ToolResult => ({
  text: delegationFailureText({ workspace, reason, taskId }),
  isError: true,
})

async function delegateAndWait(input: DelegateInput, call: ToolCall): Promise<ToolResult> {
  const task = await call.wait((signal) =>
    whileWaiting(call, async () => {
      const { taskId } = await admit(input, call, signal)
      const ended = await waitForEnd(taskId, { call, workspace: input.workspace_id }, signal)
      // A caller that gave up does not get this answer: the result comes to it as a message.
      if (!signal.aborted && !call.isGivenUp()) await call.reception.markRead(ended, call.identity, call.response)
      return ended
    }),
  )
  const { id, status } = task
  const { workspace_id: workspace } = input
  if (status.state === 'TASK_STATE_COMPLETED') return { text: firstPage(task) }
  if (status.state === 'TASK_STATE_INPUT_REQUIRED') {
    const how = `Answer with delegate_task, the same workspace_id and task_id "${id}".`
    return { text: `${workspace} asks before it goes on:\n${firstPage(task)}\n\n${how}` }
  }
  if (isFinal(status.state)) return failureResult(workspace, taskEndText(status.state, firstPage(task)), id)
  const reason = statusText(task) || 'the call was interrupted'
  return failureResult(workspace, `${reason}; check_task_status shows its result later`, id)
}

async function admit(input: DelegateInput, call: ToolCall, signal: AbortSignal): Promise<Admitted> {
  const { reception, clock, report } = call
  const { id } = await findPeer(input.workspace_id, call)
  const letter = letterOf(id, input, call)
  const onRetry = ({ message }: MoleculeError) => report(`retrying: ${message}`)
  return await withRetries(() => reception.admit(letter), { clock, signal, onRetry })
}

/** Every try has the same message id, so that a retry attaches to its own task. */
function letterOf(workspaceId: string, input: DelegateInput, call: ToolCall): Letter {
  const { task, task_id: taskId, max_cost_usd: maxCostUsd } = input
  const { identity, bytes, trace } = call
  const messageId = `mcp-${ulid()}`
  const own = taskId === undefined ? {} : { taskId }
  const envelope = envelopeOf({ messageId, parts: [{ text: task }], ...own, ...withBudget(maxCostUsd) })
  return {
    workspaceId,
    principal: identity.principal,
    bytes,
    sender: { ...identity.sender, door: 'mcp' },
    envelope: trace === undefined ? envelope : { ...envelope, trace },
    ...parentOf(call.identity),
  }
}

/** The turn that delegates gives up its slot while it waits. */
function whileWaiting<T>(call: ToolCall, work: () => Promise<T>): Promise<T> {
  const { parent } = parentOf(call.identity)
  return parent === undefined ? work() : call.reception.whileWaiting(parent, work)
}

/** The task when it has ended, when the peer stays unavailable, or on abort. */
async function waitForEnd(
  taskId: string,
  { call, workspace }: { readonly call: ToolCall; readonly workspace: string },
  signal: AbortSignal,
): Promise<Task> {
  const { reception, clock, report } = call
  let unavailableSinceMs: number | undefined
  report(`${workspace} has the task ${taskId}`)
  for (;;) {
    const beganMs = clock.monotonicMs()
    const task = await reception.waitForResult(taskId, REPORT_EVERY_MS, signal)
    if (task === undefined) throw new MoleculeError('not_found', `there is no task ${taskId}`)
    if (signal.aborted || (await hasEnded(task, call))) return task
    const nowMs = clock.monotonicMs()
    report(`${workspace}: ${statusText(task) || stateName(task)}`)
    const waitedMs = nowMs - beganMs
    // A task whose turn waits for a permission answers a wait at once too, but its peer works.
    if (waitedMs >= UNAVAILABLE_POLL_MS || isInterrupted(task.status.state)) unavailableSinceMs = undefined
    else unavailableSinceMs ??= beganMs
    if (unavailableSinceMs !== undefined && nowMs - unavailableSinceMs > UNAVAILABLE_MS_MAX) return task
    if (waitedMs < UNAVAILABLE_POLL_MS) await sleep(clock, UNAVAILABLE_POLL_MS, signal)
  }
}

/** False while the task's turn waits for a permission: it goes on when an owner answers. */
async function hasEnded({ id, status }: Task, { store }: ToolCall): Promise<boolean> {
  if (isFinal(status.state)) return true
  if (!isInterrupted(status.state)) return false
  if (status.state !== 'TASK_STATE_AUTH_REQUIRED') return true
  return (await readTaskWork(store, id))?.isRunning !== true
}

async function findOwnTask(id: string, { reception, taskViews }: ToolCall): Promise<Task> {
  for (const view of taskViews) {
    const task = await reception.task(id, { ...view, historyLength: 0 })
    if (task !== undefined) return task
  }
  throw new MoleculeError('not_found', `you delegated no task ${id}`)
}

/** The last tasks that this caller gave to its peers, the newest first. */
async function listOwnTasks({ reception, registry, workspaceId, identity }: ToolCall): Promise<object[]> {
  const peers = (await registry.peers(workspaceId)).slice(0, PEERS_MAX)
  const query = { principal: identity.principal, limit: LISTED_MAX, artifacts: false, historyLength: 1 }
  const pages = await Promise.all(
    peers.map(async ({ id, name }) => {
      const { tasks } = await reception.list({ ...query, workspaceId: id })
      return tasks.map((task) => ({ task, name }))
    }),
  )
  const changedAt = ({ task }: { readonly task: Task }) => task.status.timestamp ?? ''
  const newest = pages.flat().sort((a, b) => (changedAt(a) < changedAt(b) ? 1 : -1))
  return newest.slice(0, LISTED_MAX).map(({ task, name }) => ({
    task_id: task.id,
    workspace: name,
    state: stateName(task),
    changed_at: task.status.timestamp ?? null,
    task: (task.history?.[0]?.parts[0]?.text ?? '').slice(0, TASK_SHOWN_CHARACTERS_MAX),
  }))
}
