/**
 * What the platform says about itself: health, readiness, version, API document. Health and readiness need no token,
 * because a supervisor or a load balancer has none. So they show only what a port scan would show.
 */
import { route } from './route.ts'

export const aboutRoutes = [
  route({
    method: 'get',
    path: '/health',
    access: 'open',
    summary: 'Whether the platform is alive',
    success: [200, 'It is alive'],
    handle: ({ context }, { version }) => context.json({ status: 'ok', name: 'molecule', version, pid: process.pid }),
  }),
  route({
    method: 'get',
    path: '/ready',
    access: 'open',
    summary: 'Whether the platform accepts work',
    success: [200, 'It accepts work; 503 with the reason when it does not'],
    async handle({ context }, { unready }) {
      const reason = await unready()
      if (reason === undefined) return context.json({ status: 'ready' })
      return context.json({ status: 'not_ready', reason }, 503)
    },
  }),
  route({
    method: 'get',
    path: '/version',
    access: 'platform.read',
    summary: 'Name and version',
    success: [200, 'Name and version, and "public_url" where the owner has set one'],
    handle: ({ context }, { version, addresses: { publicUrl } }) =>
      context.json({
        name: 'molecule',
        version,
        node: process.version,
        a2a: ['1.0', '0.3'],
        ...(publicUrl !== undefined && { public_url: publicUrl }),
      }),
  }),
  route({
    method: 'get',
    path: '/openapi.json',
    access: 'platform.read',
    summary: 'This document',
    success: [200, 'This document'],
    handle: ({ context }, { openApi, addresses }) =>
      context.body(openApi(addresses.baseUrl(context.env.incoming)), 200, { 'Content-Type': 'application/json' }),
  }),
]
