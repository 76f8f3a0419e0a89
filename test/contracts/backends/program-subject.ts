/** What a program with a fake has in common for the contract: its options under each behaviour of the fake. */
import type { BackendSubject } from './backend-contract.ts'

type Values = BackendSubject['echo']

/** `limit` ends an endless turn soon. */
export const programSubject = (run: (behaviour: string) => Values, limit: Values) =>
  ({
    echo: run('echo'),
    endless: run('endless'),
    startsProcesses: true,
    empty: { values: run('empty'), code: 'empty_response' },
    slow: { ...run('endless'), ...limit },
    flood: run('flood'),
    keepsSession: true,
  }) as const
