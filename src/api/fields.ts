/** Fields that bodies of several resources share. */
import { z } from 'zod'
import {
  isPlainLine,
  NAME_CHARACTERS_MAX,
  PLAIN_LINE_REASON,
  SHORT_TEXT_CHARACTERS_MAX,
} from '../workspaces/workspace.ts'

export const URL_CHARACTERS_MAX = 2000

/** The name of a workspace or of a schedule. */
export const nameSchema = z.string().trim().min(1).max(NAME_CHARACTERS_MAX).refine(isPlainLine, PLAIN_LINE_REASON)

/** An id, or another text of one line. */
export const shortTextSchema = z
  .string()
  .trim()
  .min(1)
  .max(SHORT_TEXT_CHARACTERS_MAX)
  .refine(isPlainLine, PLAIN_LINE_REASON)
