import type { Json, JsonObject } from '../../engine/base/json.ts'
import { at, membersAt, textAt } from '../json-access.ts'
import type { Draft } from '../route-yaml.ts'
import { isCredential } from './wanted-credential.ts'
import { findExample, type Shown, shownIn } from './example.ts'
import { bundle, validatorOf } from './json-schema.ts'
import { FORM_TYPE, JSON_TYPE, PLAIN_TYPE } from './media-type.ts'
import { draftOf, type Kept, mapForm, type Mapped } from './parameter.ts'
import { follow } from './reference.ts'

/** The body of an operation, in the first of its forms that can be sold. */
export type FoundBody =
  | { readonly kind: 'none' }
  /** None of its forms can be sold. */
  | { readonly kind: 'unfit'; readonly types: readonly string[] }
  | (Sold & { readonly kind: 'json'; readonly media: Json })
  | (Sold & { readonly kind: 'form'; readonly members: readonly Mapped[]; readonly keys: readonly string[] })
  | (Sold & { readonly kind: 'media'; readonly type: string; readonly media?: Json })

interface Sold {
  readonly required: boolean
  /** Media types in which the API takes it, too. */
  readonly others: readonly string[]
}

export function bodyOf(openapi: JsonObject, operation: JsonObject): FoundBody {
  const requestBody = follow(openapi, operation['requestBody'])
  const content = membersAt(follow(openapi, at(requestBody, 'content')))
  const required = at(requestBody, 'required') === true
  const sold = (type: string): Sold => ({
    required,
    others: content.flatMap(([each]) => (each === type || JSON_TYPE.test(each) ? [] : [each])),
  })
  const json = content.find(([type]) => JSON_TYPE.test(type) || type === '*/*')
  if (json !== undefined) return { kind: 'json', ...sold(json[0]), media: json[1] }
  const form = content.find(([type]) => type.startsWith(FORM_TYPE))
  if (form !== undefined) {
    const schema = follow(openapi, at(form[1], 'schema'))
    const keys = membersAt(follow(openapi, at(schema, 'properties'))).flatMap(([name, member]) => {
      const description = textAt(follow(openapi, member), 'description') ?? ''
      return isCredential(openapi, { name, description }) ? [name] : []
    })
    const members = mapForm(openapi, schema).filter(({ wire }) => !keys.includes(wire))
    const isWhole = members.every((each) => each.kind === 'mapped' || !each.required) && members.length > 0
    return isWhole
      ? { kind: 'form', ...sold(form[0]), members, keys }
      : { kind: 'media', ...sold(form[0]), type: FORM_TYPE }
  }
  const plain = content.find(([type]) => PLAIN_TYPE.test(type) && !type.startsWith('multipart/'))
  if (plain !== undefined) return { kind: 'media', ...sold(plain[0]), type: plain[0], media: plain[1] }
  return content.length === 0 ? { kind: 'none' } : { kind: 'unfit', types: content.map(([type]) => type) }
}

export type ConvertedBody =
  | { readonly kind: 'schema'; readonly schema: JsonObject; readonly example: Shown }
  | { readonly kind: 'properties'; readonly properties: Draft['parameters'] }
  | { readonly kind: 'media'; readonly type: string; readonly example?: string }

interface BodyAndNotes {
  readonly body: ConvertedBody | undefined
  /** Differences from the original. */
  readonly notes: readonly string[]
}

/** The example of a body is part of every offer, which has 4 kB. */
const LONGEST_BODY = 1_000

/** `properties` are those of a form. */
export function convertBody(
  openapi: JsonObject,
  found: FoundBody,
  method: string,
  properties: readonly Kept[],
): BodyAndNotes {
  if (found.kind === 'none' || found.kind === 'unfit') return { body: undefined, notes: [] }
  if (method === 'get') return { body: undefined, notes: ['a GET is sent without its body'] }
  const notes =
    found.others.length === 0 ? [] : [`takes its body in one form only, not as ${found.others.join(', ')}`]
  if (found.kind === 'media') {
    const { type, media } = found
    const example = shownIn(openapi, media).find((each) => typeof each === 'string' && each !== '')
    const isShown = typeof example === 'string' && example.length <= LONGEST_BODY && type.startsWith('text/')
    const free = type === FORM_TYPE ? ['takes any form: its members are not plain values'] : []
    return {
      body: { kind: 'media', type, ...(isShown ? { example } : {}) },
      notes: [...notes, ...free],
    }
  }
  if (found.kind === 'form') {
    const drafts = properties.map((each) => draftOf(each.wire, each))
    return { body: { kind: 'properties', properties: drafts }, notes }
  }
  const schema = bundle(openapi, at(found.media, 'schema') ?? {})
  const isFit = validatorOf(schema)
  const example = findExample(openapi, found.media, LONGEST_BODY, (value) => isFit?.(value) === true)
  if (example !== undefined) return { body: { kind: 'schema', schema, example }, notes }
  return {
    body: { kind: 'media', type: 'application/json' },
    notes: [...notes, 'takes any JSON body: no example fits the schema of the document'],
  }
}
