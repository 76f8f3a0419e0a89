/**
 * The door seam: how the outside reaches the inbox. A door turns what arrives into an A2A message and admits it, then
 * follows the task. It never calls the runtime. A door is constructed with its dependencies, so the wiring only starts
 * and closes it.
 */

/**
 * Contract: a door answers "accepted" only after admission. `start` resolves when the door accepts messages and rejects
 * when it cannot. `close` accepts nothing new, lets running requests finish within the door's own limit, and is
 * idempotent.
 */
export interface Door {
  readonly name: string
  start(): Promise<void>
  close(): Promise<void>
}
