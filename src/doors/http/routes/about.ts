/** What the platform says about itself: health, readiness, version, API document. */
import { readApiDocument, readHealth, readReadiness, readVersion } from '../../../api/platform.ts'
import { serve } from './route.ts'

export const aboutRoutes = [
  serve(readHealth, (_call, { version }) => ({ status: 'ok', name: 'molecule', version, pid: process.pid })),
  serve(readReadiness, async ({ context }, { unready }) => {
    const reason = await unready()
    if (reason === undefined) return { status: 'ready' }
    context.status(503)
    return { status: 'not_ready', reason }
  }),
  serve(readVersion, (_call, { version, addresses: { publicUrl } }) => ({
    name: 'molecule',
    version,
    node: process.version,
    a2a: ['1.0', '0.3'],
    public_url: publicUrl,
  })),
  serve(readApiDocument, ({ context }, { openApi, addresses }) =>
    context.body(openApi(addresses.baseUrl(context.env.incoming)), 200, { 'Content-Type': 'application/json' }),
  ),
]
