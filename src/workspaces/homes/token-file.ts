/**
 * Keeps the token in `.auth-token` with the runtime that it was given for: a token belongs to one vendor. When a
 * workspace gets another runtime, its token is renamed to `.auth-token.<runtime>`, and comes back with that runtime.
 * Invariant: a new runtime finds a token only if the owner gave it one.
 */
import { chmod, copyFile, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DEFAULT_RUNTIME } from '../config/config-file.ts'
import { ignoreMissing } from './ignore-missing.ts'

export const AUTH_TOKEN_FILE = '.auth-token'
/** A workspace without a template gets its agent's token from this one. It is a token of claude. */
const DEFAULT_TEMPLATE = 'claude-code-default'
/** Of a runtime in a file name; an adapter may have any name. */
const RUNTIME_CHARACTERS_MAX = 100

/** True for `.auth-token` and for a token that was set aside. Compared without case: some disks ignore it. */
export function isTokenFile(name: string): boolean {
  const lower = name.toLowerCase()
  return lower === AUTH_TOKEN_FILE || lower.startsWith(`${AUTH_TOKEN_FILE}.`)
}

/** Renames the token of the earlier runtime, so that the next one does not get it. Returns the new name, if it was there. */
export async function setTokenAside(home: string, runtime: string): Promise<string | undefined> {
  const name = asideName(runtime)
  const moved = await ignoreMissing(rename(join(home, AUTH_TOKEN_FILE), join(home, name)).then(() => true))
  return moved === undefined ? undefined : name
}

/** The token that this runtime had before, unless the owner has given it another one since. */
export async function bringTokenBack(home: string, runtime: string): Promise<void> {
  const current = await ignoreMissing(readFile(join(home, AUTH_TOKEN_FILE)))
  if (current === undefined) await ignoreMissing(rename(join(home, asideName(runtime)), join(home, AUTH_TOKEN_FILE)))
}

/** A workspace without a template: the token of the default template, which belongs to claude. */
export async function copyDefaultToken(templates: string, home: string, runtime: string): Promise<void> {
  if (runtime !== DEFAULT_RUNTIME) return
  const file = join(home, AUTH_TOKEN_FILE)
  await ignoreMissing(copyFile(join(templates, DEFAULT_TEMPLATE, AUTH_TOKEN_FILE), file))
  await ignoreMissing(chmod(file, 0o600))
}

/** Earlier versions copied claude's token into workspaces of every runtime. Such a copy is set aside. */
export async function removeStrayToken(templates: string, home: string, runtime: string): Promise<string | undefined> {
  if (runtime === DEFAULT_RUNTIME) return undefined
  const own = await ignoreMissing(readFile(join(home, AUTH_TOKEN_FILE), 'utf8'))
  if (own === undefined || own.trim() === '') return undefined
  const ofClaude = await ignoreMissing(readFile(join(templates, DEFAULT_TEMPLATE, AUTH_TOKEN_FILE), 'utf8'))
  return own.trim() === ofClaude?.trim() ? setTokenAside(home, DEFAULT_RUNTIME) : undefined
}

const asideName = (runtime: string): string =>
  `${AUTH_TOKEN_FILE}.${runtime.replaceAll(/[^\w-]/g, '_').slice(0, RUNTIME_CHARACTERS_MAX)}`
