/** Shortens texts for people: the beginning or the end is kept, and dots stand for the rest. Pure. */

/** What activity and stories show of a long text; the whole is in the task. */
export const TEXT_CHARACTERS_MAX = 500

/** The end of a text, where a program says why it failed; cut between characters. */
export const truncateStart = (text: string, charactersMax: number): string =>
  text.length > charactersMax ? `...${text.slice(3 - charactersMax).replace(/^[\udc00-\udfff]/, '')}` : text

export const truncate = (text: string, charactersMax: number): string =>
  text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text

/** The first characters, and dots where there are more. */
export const shorten = (text: string, charactersMax: number): string =>
  text.length > charactersMax ? `${text.slice(0, charactersMax).toWellFormed()}...` : text
