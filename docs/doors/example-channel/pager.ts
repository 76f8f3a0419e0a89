/**
 * A kind of channel from the adapters folder: an imaginary pager service that calls a webhook for each message, and takes
 * answers by POST. Copy this folder to <data-dir>/adapters/pager, and change it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { ChannelEvents, ChannelKind, ChannelOptions } from 'molecule/channel'

export const channel: ChannelKind = {
  kind: 'pager',
  tokenVariable: 'PAGER_TOKEN',
  tokenSteps: ['Open the page of your pager, and copy the token.'],
  settings: [
    {
      name: 'signing_secret',
      variable: 'PAGER_SIGNING_SECRET',
      summary: 'It is on the page of your pager, under Webhooks.',
      isSecret: true,
      isRequired: true,
    },
    {
      name: 'sender',
      variable: 'PAGER_SENDER',
      summary: 'The name that people see.',
      isSecret: false,
      isRequired: false,
    },
  ],
  async check(options) {
    const { name = '' } = await call(options, '/me')
    const steps = [`Let ${name} call https://<your platform>/channels/<name of the channel>/webhook.`]
    return { account: { id: name, name }, steps }
  },
  async open(options) {
    let events: ChannelEvents | undefined
    return {
      limits: {
        textCharactersMax: 1000,
        uploadBytesMax: 0,
        downloadBytesMax: 0,
        editMs: 1000,
        typingMs: 5000,
        nonceMs: 0,
      },
      async connect(given) {
        const { name = '' } = await call(options, '/me')
        events = given
        return { id: name, name }
      },
      render: (markdown) => markdown.match(/[\s\S]{1,1000}/g) ?? [],
      async send({ place, text }) {
        const { id = '' } = await call(options, '/pages', { place, text, sender: options.settings?.['sender'] })
        return { type: 'sent', messageId: id }
      },
      edit: async () => ({ type: 'failed', error: 'A page cannot be edited.', final: true }),
      typing: async () => undefined,
      react: async () => undefined,
      download: async () => new Uint8Array(),
      async webhook({ body, headers }) {
        if (!isGenuine(body, headers['x-pager-signature'], options.settings?.['signing_secret']))
          return { status: 401, body: 'wrong signature' }
        const { id, from, text } = JSON.parse(Buffer.from(body).toString())
        const place = { id: from, isDirect: true, name: from }
        const author = { id: from, name: from, isBot: false }
        // Resolves when the message is stored: only then may the service forget it.
        await events?.message({
          id,
          place,
          author,
          text,
          isAddressed: true,
          sentAtMs: Date.now(),
          isLive: true,
          files: [],
        })
        return { status: 200, body: 'taken' }
      },
      close: async () => undefined,
    }
  },
}

/** In constant time: a comparison that stops at the first wrong byte would tell a caller how much is right. */
function isGenuine(body: Uint8Array, signature = '', secret = ''): boolean {
  const expected = createHmac('sha256', secret).update(body).digest()
  const given = Buffer.from(signature, 'hex')
  return given.length === expected.length && timingSafeEqual(given, expected)
}

async function call({ apiUrl, token }: ChannelOptions, path: string, body?: object): Promise<Record<string, string>> {
  const response = await fetch(`${apiUrl}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (response.status === 401)
    throw Object.assign(new Error('The pager refuses the token: copy it again.'), { code: 'bad_config' })
  return (await response.json()) as Record<string, string>
}
