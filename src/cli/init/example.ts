import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { at, membersAt } from '../json-access.ts'
import { sampleOf } from './json-schema.ts'
import { follow } from './reference.ts'

export interface Shown {
  readonly value: Json
  readonly isGenerated: boolean
}

/** What a document shows of a body or an answer. */
export function shownIn(openapi: JsonObject, media: Json | undefined): (Json | undefined)[] {
  const named = membersAt(media, 'examples').map(([, each]) => at(follow(openapi, each), 'value'))
  return [at(media, 'example'), ...named, at(follow(openapi, at(media, 'schema')), 'example')]
}

/** What the document shows of a body or an answer, else the fullest that is made from its schema. */
export function findExample(
  openapi: JsonObject,
  media: Json | undefined,
  longest: number,
  isFit: (value: Json) => boolean,
): Shown | undefined {
  const isUsable = (value: Json | undefined): value is Json =>
    (isJsonObject(value) || Array.isArray(value)) &&
    JSON.stringify(value).length <= longest &&
    !JSON.stringify(value).includes('"$ref":') &&
    isFit(value)
  const schema = at(media, 'schema')
  const shown = shownIn(openapi, media).find(isUsable)
  if (shown !== undefined) return { value: shown, isGenerated: false }
  const made = [4, 2, 0].map((optional) => sampleOf(openapi, schema, optional)).find(isUsable)
  return made === undefined ? undefined : { value: made, isGenerated: true }
}
