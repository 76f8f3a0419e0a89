/** A time of the store in the form of the API. */
export const instant = (ms: number): string => new Date(ms).toISOString()

export const instantOf = (ms: number | null | undefined): string | undefined => (ms == null ? undefined : instant(ms))
