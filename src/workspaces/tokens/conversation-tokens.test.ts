import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { ulid, workspaceId } from '../../ids.ts'
import { maskPatterns } from '../../log.ts'
import { createConversationTokens } from './conversation-tokens.ts'

const subject = () => ({ workspaceId: workspaceId(), conversationId: ulid() })

test('RT-12 a conversation token is read back as its subject by every holder of the same secret', () => {
  const secret = randomBytes(32)
  const one = subject()
  const token = createConversationTokens(secret).issue(one)
  assert.deepEqual(createConversationTokens(secret).read(token), one)
  assert.equal(createConversationTokens(randomBytes(32)).read(token), undefined)
  assert.equal(maskPatterns(`it is ${token}.`), 'it is [hidden].')
})

test('RT-12 a conversation keeps its token, however many others are issued meanwhile', () => {
  const tokens = createConversationTokens(randomBytes(32))
  const subjects = Array.from({ length: 1500 }, subject)
  const issued = subjects.map(tokens.issue)
  assert.deepEqual(subjects.map(tokens.issue), issued)
  assert.equal(new Set(issued).size, subjects.length)
})

test('RT-12 no other text is a token: not an altered one, not one with the ids of another subject', () => {
  const tokens = createConversationTokens(randomBytes(32))
  const [one, other] = [subject(), subject()]
  const token = tokens.issue(one)
  assert.equal(tokens.read(token.replace(one.workspaceId, other.workspaceId)), undefined)
  assert.equal(tokens.read(token.replace(one.conversationId, other.conversationId)), undefined)
  const altered = fc.tuple(fc.nat(token.length - 1), fc.stringMatching(/^[\w-]$/))
  fc.assert(
    fc.property(altered, ([at, letter]) => {
      fc.pre(token[at] !== letter)
      assert.equal(tokens.read(token.slice(0, at) + letter + token.slice(at + 1)), undefined)
    }),
  )
  fc.assert(fc.property(fc.string(), (text) => assert.equal(tokens.read(text), undefined)))
})
