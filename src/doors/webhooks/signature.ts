/**
 * The signature of a webhook: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`, with the secret of its config as the
 * key. The receiver learns that the platform sent exactly this body, and when. The time is signed too, so that a copied
 * call can be refused after a few minutes.
 */
import { createHmac } from 'node:crypto'

export const SIGNATURE_HEADER = 'X-Molecule-Signature'

export function signWebhook(body: string, { secret, nowMs }: { secret: string; nowMs: number }): string {
  const seconds = Math.floor(nowMs / 1000)
  const mac = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')
  return `t=${seconds},v1=${mac}`
}
