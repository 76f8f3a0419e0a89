/** Ids that the page makes: of messages and of conversations. */

/** Unlike `crypto.randomUUID`, this also works on a page that is not served over https. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** The first conversation with a workspace. Its id is kept, so that its draft and an unsent message survive a reload. */
export function firstConversation(workspaceId: string): string {
  const key = `molecule.first.${workspaceId}`
  try {
    const id = localStorage.getItem(key) ?? newId()
    localStorage.setItem(key, id)
    return id
  } catch {
    // The browser refuses storage.
    return newId()
  }
}
