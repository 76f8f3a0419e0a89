/**
 * How strict published clients read A2A, where they cannot be installed: the Python SDK refuses a push config with a field
 * that it does not know (pydantic, `extra='forbid'`, and protobuf's JSON parser), and its 0.3 client drops a chunk that is
 * appended to an artifact that it has not seen. Microsoft's Agent Framework adds every text, and knows no replacement.
 */
import assert from 'node:assert/strict'
import type { Artifact, StreamResponse } from '../../src/protocol/a2a.ts'

export interface StreamReader {
  take(event: StreamResponse): void
  readonly text: string
}

const textOf = ({ parts }: Artifact): string => parts.map(({ text = '' }) => text).join('')

/** The task manager of the Python SDK 0.3. `known`: the artifacts of the task that the stream began with. */
export function createPythonReader(known: readonly Artifact[] = []): StreamReader {
  const texts = new Map(known.map((artifact) => [artifact.artifactId, textOf(artifact)]))
  return {
    take({ artifactUpdate }) {
      if (artifactUpdate === undefined) return
      const { artifact, append } = artifactUpdate
      const before = texts.get(artifact.artifactId)
      if (append !== true) texts.set(artifact.artifactId, textOf(artifact))
      else if (before !== undefined) texts.set(artifact.artifactId, before + textOf(artifact))
    },
    get text() {
      return [...texts.values()].join('')
    },
  }
}

/** The Agent Framework of Microsoft: an update of an artifact is more text of the answer. */
export function createAddingReader(): StreamReader {
  let text = ''
  return {
    take({ artifactUpdate }) {
      if (artifactUpdate !== undefined) text += textOf(artifactUpdate.artifact)
    },
    get text() {
      return text
    },
  }
}

const FIELDS_1_0 = ['tenant', 'id', 'taskId', 'url', 'token', 'authentication']
const FIELDS_0_3 = ['id', 'url', 'token', 'authentication']

/** A push config of 1.0 as protobuf's JSON parser reads it. */
export function readStrictPushConfig(config: object): void {
  requireOnly(config, FIELDS_1_0)
  if ('authentication' in config) requireOnly(config.authentication as object, ['scheme', 'credentials'])
}

/** A push config of 0.3 as pydantic reads it. */
export function readStrictPushConfigV03(config: object): void {
  requireOnly(config, ['taskId', 'pushNotificationConfig'])
  const inner = (config as { pushNotificationConfig: object }).pushNotificationConfig
  requireOnly(inner, FIELDS_0_3)
  if ('authentication' in inner) requireOnly(inner.authentication as object, ['schemes', 'credentials'])
}

function requireOnly(value: object, fields: readonly string[]): void {
  const unknown = Object.keys(value).filter((key) => !fields.includes(key))
  assert.deepEqual(unknown, [], 'extra inputs are not permitted')
}
