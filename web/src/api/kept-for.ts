/**
 * Whose text this browser keeps: drafts and unsent messages belong to the person who wrote them. When another person
 * logs in, they are removed. After a new login of the same person, unsent messages wait for a click (`outgoing.ts`).
 */
import type { MeView } from '../../../src/client/views.ts'

const PREFIX = 'molecule.'
const PERSON_KEY = `${PREFIX}person`
/** Map or list: a choice of the browser, and no text. */
const KEPT_FOR_ALL: ReadonlySet<string> = new Set([`${PREFIX}view`])

/** Called with each answer of `GET /me`, before the page shows anything of the session. */
export function keepOnlyFor({ name, role }: Pick<MeView, 'name' | 'role'>, storage: Storage = localStorage): void {
  try {
    const person = `${role} ${name}`
    if (storage.getItem(PERSON_KEY) === person) return
    forgetKept(storage)
    storage.setItem(PERSON_KEY, person)
  } catch {
    // The browser refuses storage, so it keeps no text.
  }
}

const forgetters = new Set<() => void>()

/** For text that lies in memory and not in the storage: called when it must go. */
export function alsoForget(forget: () => void): void {
  forgetters.add(forget)
}

/** Removes what people have typed here. */
export function forgetKept(storage: Storage = localStorage): void {
  for (const forget of forgetters) forget()
  for (const key of Object.keys(storage)) {
    if (key.startsWith(PREFIX) && !KEPT_FOR_ALL.has(key)) storage.removeItem(key)
  }
}
