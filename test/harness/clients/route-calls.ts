/** Calls routes of a door whose platform gives prepared answers and remembers how it was called. */
import type { TestContext } from 'node:test'
import type { HttpDoorOptions } from '../../../src/doors/http/http.ts'
import type { TokenRole } from '../../../src/workspaces/tokens.ts'
import { secretOf } from '../../fakes/platform/fake-platform.ts'
import { checkAnswer } from '../check-answer.ts'
import { type DoorRequest, type DoorResponse, openDoor } from '../open-door.ts'

/** What each method answers; an error is thrown. */
type Answers<Part> = {
  readonly [Name in keyof Part]?: Part[Name] extends (...args: never[]) => infer Result
    ? Awaited<Result> | Error
    : never
}

interface RecordedPart<Part> {
  readonly part: Part
  /** The name of the method and its arguments. */
  readonly calls: readonly (readonly unknown[])[]
  /** Forgets the calls so far and returns them. */
  take(): readonly (readonly unknown[])[]
}

/** A part of the platform. A method without an answer is a defect of the test, and the route answers 500. */
export function recordPart<Part extends object>(answers: Answers<Part>): RecordedPart<Part> {
  const calls: (readonly unknown[])[] = []
  const methods = Object.entries(answers).map(([name, answer]) => [
    name,
    async (...args: unknown[]) => {
      calls.push([name, ...args])
      if (answer instanceof Error) throw answer
      return answer
    },
  ])
  return { part: Object.fromEntries(methods) as Part, calls, take: () => calls.splice(0) }
}

interface RouteRequest extends Omit<DoorRequest, 'method' | 'token' | 'body'> {
  readonly role?: TokenRole
  /** Sent as JSON; a text or bytes are sent as they are. */
  readonly body?: unknown
}

/** Sends `'GET /path'` as an admin, and compares a successful answer with the API document. */
type CallRoute = (line: string, options?: RouteRequest) => Promise<DoorResponse>

export async function openRoutes(t: TestContext, options: Partial<HttpDoorOptions>): Promise<CallRoute> {
  const { sendRequest } = await openDoor(t, options)
  return async (line, { role = 'admin', body, ...rest } = {}) => {
    const [method = '', path = ''] = line.split(' ')
    const isRaw = body === undefined || typeof body === 'string' || Buffer.isBuffer(body)
    const token = secretOf(role)
    const answer = await sendRequest(path, { ...rest, method, token, body: isRaw ? body : JSON.stringify(body) })
    checkAnswer(method, path, { status: answer.status, body: answer.json })
    return answer
  }
}
