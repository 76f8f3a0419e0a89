/** Asking a person who sits at the terminal, in a line. */
import { createInterface } from 'node:readline/promises'
import type { Terminal } from './command-line.ts'
import { withoutControls } from './terminal/output.ts'

/** True when the name was typed once more. */
export async function typeToConfirm({ keyboard, err }: Terminal, name: string): Promise<boolean> {
  if (keyboard === undefined) return false
  err(`This deletes the workspace "${withoutControls(name)}" and cannot be taken back. Type its name to go on: `)
  const lines = createInterface({ input: keyboard })
  try {
    return (await lines.question('')).trim() === name
  } finally {
    lines.close()
  }
}
