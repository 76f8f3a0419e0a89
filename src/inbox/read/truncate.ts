/** What activity and stories show of a long text; the whole is in the task. */
export const TEXT_CHARACTERS_MAX = 500

export const truncate = (text: string, charactersMax: number): string =>
  text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text
