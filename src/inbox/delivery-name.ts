/** What a person calls a delivery, in the activity of its workspace and in "needs you". */

/** The line of a door for what it asks people. Its deliveries are requests, and no answer waits for one. */
export const requestDoor = (door: string): string => `${door}${REQUESTS}`

const REQUESTS = ' (prompts)'

/** `article`: as in "an answer". `text`: as in "answer to chat:bot". */
export function nameDelivery(row: { readonly door: string; readonly task_id: string | null }) {
  const { door, task_id: taskId } = row
  if (door.endsWith(REQUESTS)) return { article: 'a', text: `request to ${door.slice(0, -REQUESTS.length)}` }
  return taskId === null ? { article: 'a', text: `message to ${door}` } : { article: 'an', text: `answer to ${door}` }
}
