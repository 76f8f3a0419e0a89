/** The files of a message or an artifact as a chat shows them: name, type and size. Their content is a download. */
import type { ApiAnswer } from '../api/api.ts'
import type { Part } from '../protocol/a2a.ts'
import { trimEndOf } from '../trim-end.ts'

type ChatFile =
  ApiAnswer<'GET /workspaces/{id}/conversations/{conversation}'>['messages'][number]['attachments'][number]

/** Every part that is no text. */
export const filesOf = (parts: readonly Part[]): ChatFile[] =>
  parts.flatMap(({ text, filename, mediaType, raw, url, data }, part) => {
    if (text !== undefined) return []
    return {
      name: filename,
      media_type: mediaType ?? (data === undefined ? undefined : 'application/json'),
      bytes: raw === undefined ? undefined : Math.floor((trimEndOf(raw, '=').length * 3) / 4),
      url,
      part,
    }
  })
