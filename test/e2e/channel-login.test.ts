/** `molecule channel add` at a terminal: a kind that logs in asks for a name and a password, and stores only the token. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startMatrix } from '../fakes/matrix/matrix.ts'
import { openTerminal } from '../harness/command.ts'
import { startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

test('GW-18 GW-12 a bot is added by a log-in: the password is not shown and not stored, and a wrong one is a sentence', async (t) => {
  const service = await startMatrix()
  const platform = await startPlatform()
  t.after(async () => {
    await platform.dispose()
    await service.close()
  })
  const env = { MOLECULE_HOME: platform.dataDir, NO_COLOR: '1' }
  const add = async (password: string) => {
    const typing = openTerminal(t, ['channel', 'add', 'matrix'], env)
    await typing.waitForScreen(/The homeserver/)
    typing.type(`${service.apiUrl}\r`)
    await typing.waitForScreen(/The name of the bot/)
    typing.type('molecule\r')
    await typing.waitForScreen(/The password of the bot \(it is not shown\)/)
    typing.type(`${password}\r`)
    return typing
  }
  const refused = await add('a wrong one')
  await refused.waitForScreen(/refuses this name and password: check both/)
  assert.notEqual(await refused.ended(), 0)
  const added = await add(service.world.password)
  await added.waitForScreen(/added matrix: the bot Molecule/)
  assert.equal(await added.ended(), 0)
  await waitUntil(service.isConnected, 'the bot is connected')
  const stored = await readFile(join(platform.dataDir, 'channels', 'matrix', 'matrix.json'), 'utf8')
  for (const text of [refused.screen(), added.screen(), stored, platform.output()])
    for (const secret of [service.token, service.world.password, 'a wrong one']) assert.ok(!text.includes(secret), text)
  await platform.request('DELETE', '/channels/matrix')
  await waitUntil(async () => {
    const left = await readFile(join(platform.dataDir, 'channels', 'matrix', 'matrix.json')).catch(() => undefined)
    return left === undefined
  }, 'the state folder is removed with the channel')
})
