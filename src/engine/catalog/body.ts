import { isJsonObject, type Json } from '../base/json.ts'
import type { Body, Parameter, Response } from './catalog.ts'
import { valueOf } from './validator.ts'
import type { DeclaredRoute } from './schema.ts'

export const JSON_MEDIA = 'application/json'
export const FORM_MEDIA = 'application/x-www-form-urlencoded'

/** Largest body and answer unless the catalog sets another size. */
const USUAL_BYTES = 1_000_000
/** Largest body that is read without a payment and bound to the challenge. */
export const UNPAID_BYTES = 1_000_000
/** Largest size that the catalog may set. */
export const LARGEST_BYTES = 10_000_000

const UNITS = { B: 1, KB: 1_000, MB: 1_000_000 } as const

/**
 * Bytes of a size as the catalog writes it; undefined when it is none.
 *
 * @example
 * parseSize('5 MB') // 5000000
 */
export function parseSize(text: string): number | undefined {
  const [, count, unit] = /^([1-9][0-9]{0,8}) ?(B|KB|MB)$/.exec(text) ?? []
  return unit === 'B' || unit === 'KB' || unit === 'MB' ? Number(count) * UNITS[unit] : undefined
}

/** `json` reads a file that the catalog names. */
export function compileBody(
  declared: DeclaredRoute['body'],
  json: (value: unknown) => Json | undefined,
): Body | undefined {
  if (declared === undefined) return undefined
  const { properties, media_type: mediaType = JSON_MEDIA, max_size: maxSize, example } = declared
  const schema = json(declared.schema)
  const kind = kindOf(mediaType)
  return {
    form: properties === undefined ? 'whole' : 'properties',
    mediaType,
    kind,
    maxSize: parseSize(maxSize ?? '') ?? USUAL_BYTES,
    schema: isJsonObject(schema) ? schema : undefined,
    example: kind === 'text' && typeof example === 'string' ? example : json(example),
  }
}

export function kindOf(mediaType: string): Body['kind'] {
  if (isJsonMedia(mediaType)) return 'json'
  if (mediaType === FORM_MEDIA) return 'form'
  return mediaType.startsWith('text/') ? 'text' : 'bytes'
}

/** RFC 6839: `application/problem+json` is JSON too. */
export function isJsonMedia(mediaType: string): boolean {
  return /^application\/(?:[\w.+-]+\+)?json$/.test(mediaType)
}

export function compileResponse(declared: DeclaredRoute['response']): Response {
  return {
    mediaType: declared?.media_type,
    maxSize: parseSize(declared?.max_size ?? '') ?? USUAL_BYTES,
    statuses: declared?.statuses ?? [200],
    headers: declared?.headers ?? [],
    stream: declared?.stream === true,
    receiptEvent: declared?.receipt_event === true,
  }
}

/**
 * A valid body: the example of the catalog, otherwise one made of required members and members with examples. Members of a
 * form are texts, also its lists.
 */
export function bodyExample(body: Body | undefined, parameters: readonly Parameter[]): Json | undefined {
  if (body?.form !== 'properties') return body?.example
  return Object.fromEntries(
    parameters.flatMap((parameter): [string, Json][] => {
      const { name, in: place, example } = parameter
      if (place !== 'body' || example === undefined) return []
      return [[name, body.kind === 'form' ? example : valueOf(parameter, example)]]
    }),
  )
}
