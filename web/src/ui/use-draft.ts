/**
 * Forms that are not sent yet. What a person typed stays when the tab, the panel, the dialog or the page is left, and
 * comes back with the form. Names begin with the place: `<workspace>.<tab>.<form>`, or `new.<form>`. The texts lie beside
 * the drafts of messages, with their limits.
 */
import { useState, useSyncExternalStore } from 'react'
import { draftKey, draftKeys, readDraft, writeDraft } from './drafts.ts'

const keyOf = (name: string): string => draftKey('form', name)

const listeners = new Set<() => void>()

export function readForm<T>(name: string): T | undefined {
  try {
    return JSON.parse(readDraft(keyOf(name))) as T
  } catch {
    return undefined
  }
}

/** Undefined forgets it. */
export function keepForm(name: string, value: unknown): void {
  writeDraft(keyOf(name), value === undefined ? '' : JSON.stringify(value))
  for (const listener of listeners) listener()
}

export interface FormDraft<T> {
  readonly value: T
  readonly change: (more: Partial<T>) => void
  /** The form is sent, or the person does not want it: the next one is empty. */
  readonly forget: () => void
}

/** The fields of a form, as they were left. */
export function useDraft<T extends object>(name: string, empty: T): FormDraft<T> {
  const [value, setValue] = useState<T>(() => ({ ...empty, ...readForm<T>(name) }))
  return {
    value,
    change(more) {
      const next = { ...value, ...more }
      setValue(next)
      keepForm(name, JSON.stringify(next) === JSON.stringify(empty) ? undefined : next)
    },
    forget() {
      setValue(empty)
      keepForm(name, undefined)
    },
  }
}

/** The tabs of a workspace in which something is not saved yet. */
export function useUnsavedTabs(workspaceId: string): ReadonlySet<string> {
  const found = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => unsavedTabs(workspaceId),
  )
  return new Set(found.split(' '))
}

function unsavedTabs(workspaceId: string): string {
  const prefix = keyOf(`${workspaceId}.`)
  const keys = draftKeys().filter((key) => key.startsWith(prefix))
  const tabs = keys.map((key) => key.slice(prefix.length).split('.')[0])
  return [...new Set(tabs)].sort().join(' ')
}
