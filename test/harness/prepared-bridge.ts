/** What a test of a bridge begins with: a platform, a workspace of another machine, and the folder of that machine. */
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startProxy } from '../fakes/tcp-proxy.ts'
import { createExternalWorkspace, temporaryHome } from './bridge.ts'
import { type StartPlatformOptions, startPlatformFor } from './platform.ts'

export async function prepareBridge(t: TestContext, options?: StartPlatformOptions) {
  const platform = await startPlatformFor(t, options)
  const workspace = await createExternalWorkspace(platform)
  const home = temporaryHome(t)
  // A command of the test writes one line into it for each run.
  return { platform, workspace, home, runs: join(home, 'runs') }
}

/** The bridge reaches the platform only through the proxy, which loses what the test tells it to lose. */
export async function prepareBridgeBehindProxy(t: TestContext) {
  const prepared = await prepareBridge(t)
  const proxy = await startProxy(prepared.platform.url)
  t.after(() => proxy.close())
  return { ...prepared, proxy }
}
