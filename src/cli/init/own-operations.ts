import type { Json, JsonObject } from '../../engine/base/json.ts'
import { at, listAt, membersAt, textAt } from '../json-access.ts'
import { follow } from './reference.ts'

/**
 * Words of operations that are left out by default: they concern the operator of an API or the account of a user, and
 * cannot be sold.
 */
const WORDS: ReadonlyMap<string, string> = new Map([
  ...meaning('administration', ['admin', 'admins', 'administration', 'administrator', 'administrators']),
  ...meaning('signing in', ['oauth', 'oauth1', 'oauth2', 'openid', 'oidc', 'saml', 'sso', 'mfa', 'totp']),
  ...meaning('signing in', ['authentication', 'authorize', 'login', 'logout', 'signin', 'signout', 'signup']),
  ...meaning('signing in', ['password', 'passwords', 'webauthn']),
])

/** The same for words that must be a whole tag or a part of a path: `/auth/token`, `/auth.test`. */
const WHOLE: ReadonlyMap<string, string> = new Map(meaning('signing in', ['auth', 'sign in', 'sign up']))

/** Words beside a segment `auth` that make it signing in: `/auth/get` of a bank sells data. */
const SIGNING =
  /\b(?:log ?(?:in|out)|sign ?(?:in|out|up)|oauth\w*|tokens?|sessions?|passwords?|credentials?|otp|refresh|revoke|register|registration|callback)\b/

/** Two words in a row that mean keys of an account. */
const KEYS = /\b(?:api|access|ssh|signing|secret) (?:keys?|tokens?)\b/

/**
 * Words of operations that manage credentials or accounts. A tag about signing in, or about accounts, is a group of an
 * API: other operations stand in it, too, such as one that lists languages for its login page.
 */
const MANAGED =
  /\b(?:authenticat\w*|authoriz\w*|log ?in|log ?out|sign ?(?:in|out|up)|sessions?|tokens?|credentials?|passwords?|passcodes?|otp|mfa|sso|secrets?|(?:api|access) keys?|accounts?|profiles?|users?|registers?|registration|verif\w+|invit\w+|identit\w+|providers?|me)\b/

/** Tags, and first or last segments of a path, that mean the account of the caller. */
const ACCOUNT: ReadonlySet<string> = new Set([
  'account',
  'billing',
  'profile',
  'me',
  'self',
  'myself',
  'whoami',
])

function meaning(of: string, words: readonly string[]): [string, string][] {
  return words.map((word) => [word, of])
}

export interface Described {
  readonly path: string
  readonly operation: Json
}

/** Why an operation is nothing to sell, as a noun: `administration`. */
export type OwnOperations = (described: Described) => string | undefined

/**
 * Judges the operations of one document. A word that most of its operations have, such as the `admin` of an API for
 * administrators, says nothing of one of them.
 */
export function ownOperations(openapi: JsonObject, all: readonly Described[]): OwnOperations {
  const signing = signingPaths(openapi)
  const counts = new Map<string, number>()
  for (const each of all)
    for (const sign of signsOf(openapi, each)) counts.set(sign, (counts.get(sign) ?? 0) + 1)
  const isCommon = (sign: string): boolean => (counts.get(sign) ?? 0) * 2 > all.length
  return (described) => {
    // A path may stand below the one of the server.
    if (described.path.length > 1 && signing.some((each) => each.endsWith(described.path)))
      return 'signing in'
    const found = [...signsOf(openapi, described)].find((sign) => !isCommon(sign))
    return found === undefined
      ? undefined
      : (WORDS.get(found) ?? WHOLE.get(found) ?? 'the account of the caller')
  }
}

/** The texts of an operation that may show what it is about, each as words. */
function signsOf(openapi: JsonObject, { path, operation }: Described): ReadonlySet<string> {
  const segments =
    path
      .split(/[?#]/)[0]
      ?.split('/')
      .filter((each) => each !== '') ?? []
  const literal = segments.filter((each) => !each.startsWith('{') && !VERSION.test(each))
  const tags = listAt(operation, 'tags').filter((tag) => typeof tag === 'string')
  const own = [...literal, ...['operationId', 'summary'].flatMap((key) => textAt(operation, key) ?? [])].map(
    spell,
  )
  const groups = tags.filter((tag) => !isOfPerson(spell(tag)) || MANAGED.test(own.join(' ')))
  const parts = [...literal.flatMap((each) => each.split(/[.:]/)), ...groups].map(spell)
  const ends = [...[literal[0], segments.at(-1)].flatMap((each) => each ?? []), ...groups].map(spell)
  const isSigning =
    groups.some((each) => spell(each) === 'auth') ||
    literal.some((each) => /^auth[.:]/i.test(each)) ||
    SIGNING.test([...literal, textAt(operation, 'operationId') ?? ''].map(spell).join(' ')) ||
    takesPassword(openapi, operation)
  const id = spell(textAt(operation, 'operationId') ?? '').split(' ')
  return new Set([
    ...parts.flatMap((each) => each.split(' ')).filter((word) => WORDS.has(word)),
    ...[...id, ...leastScopes(openapi, operation)].filter((word) => WORDS.get(word) === 'administration'),
    ...parts.filter((each) => WHOLE.has(each) && (each !== 'auth' || isSigning)),
    ...ends.filter((each) => ACCOUNT.has(each)),
    ...parts.flatMap((each) => KEYS.exec(each)?.[0] ?? []),
  ])
}

function takesPassword(openapi: JsonObject, operation: Json): boolean {
  const parameters = listAt(operation, 'parameters').map(
    (each) => textAt(follow(openapi, each), 'name') ?? '',
  )
  const body = follow(openapi, at(operation, 'requestBody'))
  const members = membersAt(body, 'content').flatMap(([, media]) =>
    membersAt(follow(openapi, at(media, 'schema')), 'properties').map(([name]) => name),
  )
  return [...parameters, ...members].some((name) => spell(name).split(' ').includes('password'))
}

/** Whether a tag is about signing in, or about the account of the caller. */
function isOfPerson(tag: string): boolean {
  const isSigning = tag.split(' ').some((word) => WORDS.get(word) === 'signing in')
  return isSigning || WHOLE.has(tag) || ACCOUNT.has(tag)
}

/** Segments that only say which API it is. */
const VERSION = /^(?:api|rest|v?\d[\d.-]*)$/i

/** The first words of the OAuth scopes without which an operation is not answered: `admin.apps:write` → `admin`. */
function leastScopes(openapi: JsonObject, operation: Json): string[] {
  const security = at(operation, 'security') ?? openapi['security']
  const [first = [], ...others] = (Array.isArray(security) ? security : []).map((choice: Json) =>
    membersAt(choice).flatMap(([, scopes]) =>
      (Array.isArray(scopes) ? scopes : []).map(
        (scope: Json) => spell(JSON.stringify(scope)).split(' ')[0] ?? '',
      ),
    ),
  )
  return first.filter((word) => others.every((each) => each.includes(word)))
}

/** Paths at which the API gives out its tokens. */
function signingPaths(openapi: JsonObject): string[] {
  const schemes = membersAt(follow(openapi, at(openapi, 'components', 'securitySchemes')))
  const urls = schemes.flatMap(([, given]) => {
    const scheme = follow(openapi, given)
    return [scheme, ...membersAt(scheme, 'flows').map(([, flow]) => flow)].flatMap((each) =>
      ['authorizationUrl', 'tokenUrl', 'refreshUrl'].flatMap((key) => textAt(each, key) ?? []),
    )
  })
  const base = 'https://upstream.example'
  return urls.flatMap((url) => (URL.canParse(url, base) ? [new URL(url, base).pathname] : []))
}

/** `listApiKeys` → `list api keys`. */
function spell(text: string): string {
  return text
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim()
}
