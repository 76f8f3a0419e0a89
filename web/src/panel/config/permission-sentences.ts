/** What a permission means, in the words of the page. */

export const PERMISSION_SENTENCES = {
  ask: ['asks before it acts', 'It asks you before a command or a change that no rule allows.'],
  allowed_tools: ['acts within its tools', 'It uses the tools that its settings allow, and asks for no other.'],
  bypass: ['never asks', 'It runs commands and changes files without asking.'],
} as const
