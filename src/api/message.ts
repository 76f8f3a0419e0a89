/** Messages of A2A 1.0 and their senders, as answers show them. Of requests, `protocol/schemas.ts` reads them. */
import { z } from 'zod'
import type { Json } from '../protocol/a2a.ts'

const jsonSchema = z.custom<Json>()
export const metadataSchema = z.record(z.string(), jsonSchema)

export const partSchema = z.strictObject({
  text: z.string().exactOptional(),
  raw: z.string().exactOptional().describe('Bytes as base64.'),
  url: z.string().exactOptional(),
  data: jsonSchema.exactOptional(),
  mediaType: z.string().exactOptional(),
  filename: z.string().exactOptional(),
  metadata: metadataSchema.exactOptional(),
})

export const messageSchema = z.strictObject({
  messageId: z.string(),
  contextId: z.string().exactOptional(),
  taskId: z.string().exactOptional(),
  role: z.enum(['ROLE_USER', 'ROLE_AGENT']),
  parts: z.array(partSchema),
  metadata: metadataSchema.exactOptional(),
  extensions: z.array(z.string()).exactOptional(),
  referenceTaskIds: z.array(z.string()).exactOptional(),
})

/** The sender as the door has identified it. */
export const senderSchema = z.strictObject({
  kind: z.enum(['person', 'agent', 'program', 'schedule']),
  id: z.string(),
  name: z.string(),
  door: z.string().describe('The door that the message came through, such as "http" or "discord".'),
  channel: z.string().exactOptional().describe('The chat channel, for a message of a chat.'),
})
