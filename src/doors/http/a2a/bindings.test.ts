import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../errors.ts'
import type { Workspace, WorkspaceLoad, Workspaces } from '../../../workspaces/workspace.ts'
import {
  a2aFailure,
  findFailureCause,
  grpcStatusName,
  isKnownVersion,
  isVersion1,
  refusal,
  rpcStatus,
} from './bindings.ts'

const ID = 'ws_01M7FPH65GBDK8DY0646KAE617'

test('PL-5 versions 0.3 and 1.0 are known with any patch; no version is 0.3 for JSON-RPC and 1.0 elsewhere', () => {
  const versions = [undefined, '', '0.3', '0.3.7', '1.0', '1.0.12', '0.2', '1.1', '2.0', '10.0', '1.0.', 'x1.0']
  assert.deepEqual(versions.filter(isKnownVersion), [undefined, '', '0.3', '0.3.7', '1.0', '1.0.12'])
  assert.deepEqual(versions.filter(isVersion1), [undefined, '', '1.0', '1.0.12'])
})

test('PL-5 refusals without a code of ours have their code of JSON-RPC and a reason', () => {
  const shown = (error: ReturnType<typeof refusal>) => [error.code, error.message, error.data?.[0]?.reason]
  assert.deepEqual(shown(refusal('versionNotSupported')), [
    -32009,
    'the versions served here are 1.0 and 0.3',
    'VERSION_NOT_SUPPORTED',
  ])
  assert.deepEqual(shown(refusal('methodNotFound', 'x')), [-32601, 'x', 'METHOD_NOT_FOUND'])
  assert.deepEqual(shown(refusal('invalidParams', 'x')), [-32602, 'x', 'WORKSPACE_NOT_FOUND'])
})

test('PL-5 a call that found nothing failed because of its workspace only when that does not exist', async () => {
  const workspaces = (found: boolean | Error) =>
    ({
      async get() {
        if (found instanceof Error) throw found
        return found ? ({} as Workspace & WorkspaceLoad) : undefined
      },
    }) as unknown as Workspaces
  const notFound = new MoleculeError('not_found', 'nothing')
  const other = new MoleculeError('queue_full', 'full')
  const noName = new MoleculeError('not_found', 'no workspace', { details: { workspace: 'bot' } })
  assert.deepEqual(await findFailureCause(workspaces(false), ID, notFound), { noWorkspace: ID })
  assert.deepEqual(await findFailureCause(workspaces(true), ID, notFound), { error: notFound })
  assert.deepEqual(await findFailureCause(workspaces(false), ID, other), { error: other })
  assert.deepEqual(await findFailureCause(workspaces(new Error('gone')), ID, notFound), { error: notFound })
  assert.deepEqual(await findFailureCause(workspaces(true), 'bot', noName), { noWorkspace: 'bot' })
  assert.deepEqual(await findFailureCause(workspaces(false), 'bot', notFound), { error: notFound })
})

test('PL-5 over JSON-RPC only the statuses of HTTP itself stay, and that of a denial', () => {
  const statusOf = (status: number, isDenied: boolean) =>
    rpcStatus({ status, headers: {}, error: refusal('methodNotFound') }, isDenied)
  for (const status of [401, 413, 429, 503, 507])
    assert.deepEqual([statusOf(status, true), statusOf(status, false)], [status, status])
  for (const status of [400, 404, 409, 410, 500, 502, 504])
    assert.deepEqual([statusOf(status, true), statusOf(status, false)], [200, 200])
  assert.deepEqual([statusOf(403, true), statusOf(403, false)], [403, 200])
})

test('PL-5 a failure has the status, headers and error that its caller may see', () => {
  const none = a2aFailure({ noWorkspace: 'bot' }, 'req_1')
  assert.deepEqual(
    [none.status, none.headers, none.error.code, none.error.message],
    [404, {}, -32602, 'there is no workspace bot'],
  )
  const gone = a2aFailure({ error: new MoleculeError('store_unavailable', 'at /inside') }, 'req_1')
  assert.deepEqual([gone.status, gone.headers], [503, { 'Retry-After': '1' }])
  assert.match(gone.error.message, /^the store is unavailable.*\(req_1\)$/)
})

test('PL-5 a valid request that cannot be served now is a failed precondition; other errors are named by status', () => {
  for (const code of [-32002, -32003, -32004, -32007, -32008, -32009])
    assert.equal(grpcStatusName(400, code), 'FAILED_PRECONDITION', String(code))
  for (const code of [-32001, -32005, -32600, -32602]) assert.equal(grpcStatusName(400, code), 'INVALID_ARGUMENT')
  const names = [
    ...['INVALID_ARGUMENT', 'UNAUTHENTICATED', 'PERMISSION_DENIED', 'NOT_FOUND', 'ABORTED', 'OUT_OF_RANGE'],
    ...['RESOURCE_EXHAUSTED', 'RESOURCE_EXHAUSTED', 'INTERNAL', 'INTERNAL', 'UNAVAILABLE', 'DEADLINE_EXCEEDED'],
    ...['RESOURCE_EXHAUSTED', 'UNKNOWN'],
  ]
  const statuses = [400, 401, 403, 404, 409, 410, 413, 429, 500, 502, 503, 504, 507, 418]
  assert.deepEqual(
    statuses.map((status) => grpcStatusName(status, 0)),
    names,
  )
})
