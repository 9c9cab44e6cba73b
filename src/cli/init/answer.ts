import type { Json, JsonObject } from '../../engine/base/json.ts'
import { isSuccessStatus } from '../../engine/base/success-status.ts'
import { at, membersAt } from '../json-access.ts'
import { findExample, type Shown } from './example.ts'
import { JSON_TYPE } from './media-type.ts'
import { follow } from './reference.ts'

export interface Answer {
  /** `response` of the route. */
  readonly response: JsonObject
  /** An answer that the API shows, or one made from its schema. */
  readonly example: Shown | undefined
}

/** Long answers cost every reader of the documents. */
const LONGEST_EXAMPLE = 8_000

export function answerOf(openapi: JsonObject, operation: JsonObject): Answer {
  const responses = responsesOf(openapi, operation)
  const [, given] =
    responses.find(([status]) => /^2\d\d$/.test(status)) ??
    responses.find(([status]) => /^(?:2XX|default)$/i.test(status)) ??
    []
  const response = follow(openapi, given)
  const content = membersAt(response, 'content')
  const [type = '', media] =
    content.find(([name]) => JSON_TYPE.test(name) || name === '*/*') ??
    content.find(([name]) => name.startsWith('text/')) ??
    content[0] ??
    []
  const essence = type.split(';')[0]?.trim().toLowerCase() ?? ''
  const isJson = essence === '' || essence === '*/*' || JSON_TYPE.test(essence)
  const statuses = responses.map(([status]) => Number(status)).filter(isSuccessStatus)
  const headers = membersAt(response, 'headers').map(([name]) => name)
  const passed = headers.filter(
    (name) =>
      /^(?:ETag|Link|Last-Modified|Location|Content-Disposition|Content-Language|X-[A-Za-z0-9-]+)$/i.test(
        name,
      ) && !/^x-rate-?limit/i.test(name),
  )
  return {
    response: {
      ...(statuses.length === 0 || statuses.join() === '200' ? {} : { statuses }),
      ...(/^(?:text\/event-stream|application\/(?:x-ndjson|jsonl))$/.test(essence) ? { stream: true } : {}),
      ...(isJson || !/^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/.test(essence) ? {} : { media_type: essence }),
      ...(passed.length === 0 ? {} : { headers: passed.slice(0, 10) }),
    },
    example: isJson ? exampleOf(openapi, media) : undefined,
  }
}

/** The responses of an operation by their status. */
export function responsesOf(openapi: JsonObject, operation: JsonObject): [string, Json][] {
  return membersAt(follow(openapi, at(operation, 'responses')))
}

function exampleOf(openapi: JsonObject, media: Json | undefined): Shown | undefined {
  const found = findExample(openapi, media, LONGEST_EXAMPLE, () => true)
  const isHollow = found?.isGenerated === true && JSON.stringify(found.value).length <= 2
  return isHollow ? undefined : found
}
