/** Looks a typed folder up on the platform's machine. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { client, reasonOf } from '../api/client.ts'
import { closestName, splitPath } from './folders.ts'

/** A pause in typing before the folder is looked up. */
const TYPING_MS = 300

export interface FolderCheck {
  /** The absolute path; undefined while it is not known, and for an empty field. */
  readonly path?: string
  readonly problem?: string
  /** The path that was probably meant. */
  readonly suggestion?: string
  readonly isChecking: boolean
}

export function useFolder(typed: string): FolderCheck {
  const settled = useSettled(typed.trim())
  const isEmpty = typed.trim() === ''
  const { data, error, isFetching } = useQuery({
    queryKey: ['folder', settled],
    queryFn: () => lookUp(settled),
    enabled: settled !== '',
    retry: false,
  })
  if (isEmpty) return { isChecking: false }
  if (settled !== typed.trim() || isFetching) return { isChecking: true }
  if (error !== null) return { problem: reasonOf(error), isChecking: false }
  return { ...data, isChecking: false }
}

async function lookUp(path: string): Promise<Omit<FolderCheck, 'isChecking'>> {
  try {
    return { path: (await client.call('GET /folders', { path })).path }
  } catch (thrown) {
    const suggestion = await suggest(path)
    if (suggestion === undefined) return { problem: reasonOf(thrown) }
    return { problem: 'This folder does not exist.', suggestion }
  }
}

async function suggest(path: string): Promise<string | undefined> {
  const parts = splitPath(path)
  if (parts === undefined) return undefined
  try {
    const { folders } = await client.call('GET /folders', { path: parts.parent })
    const name = closestName(
      parts.name,
      folders.map((folder) => folder.name),
    )
    return name === undefined ? undefined : `${parts.parent.replace(/\/$/, '')}/${name}`
  } catch {
    return undefined
  }
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text])
  return settled
}
