/**
 * The door seam: how the outside reaches the inbox. A door turns what arrives into an A2A message and admits it, then
 * follows the task; it never calls the runtime. What a door needs it is built with, so this is all that the wiring
 * has to know of one. Doors that push out (chat, webhooks) will add their deliveries to this.
 */

/**
 * Contract: a door tells the sender "accepted" only after admission. `start` resolves when it takes messages and
 * rejects when it cannot; `close` stops taking new ones, lets what is being answered finish within a limit of the
 * door's own, and is idempotent.
 */
export interface Door {
  readonly name: string
  start(): Promise<void>
  close(): Promise<void>
}
