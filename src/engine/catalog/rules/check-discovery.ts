import { type CheckContext, entriesOf, routesOf } from '../check-context.ts'
import { nameOf } from '../compile-route.ts'
import { error, type Issue, warning } from '../issue.ts'
import { isDate } from '../schema-compiler.ts'

/** Checks the texts by which others verify or index a service, which have an exact form. */
export function* checkDiscovery(context: CheckContext): Generator<Issue> {
  const { updated, license } = context.declared.service
  const { document } = context
  if (updated !== undefined && !isDate(updated))
    yield error(
      'date_invalid',
      document.at(['service', 'updated']),
      `there is no day ${updated} between 1970 and 2100`,
    )
  // OpenAPI 3.1 takes one of the two.
  if (license?.identifier !== undefined && license.url !== undefined)
    yield error(
      'license_twice',
      document.atKey(['service', 'license', 'url']),
      'a licence is named by its identifier or by its url: keep one of them',
    )
  yield* checkIcon(context)
  yield* checkLengths(context)
  yield* checkRegistryAuth(context)
  yield* checkKeyFiles(context)
}

function* checkIcon({ declared: { service, files = {} }, document }: CheckContext): Generator<Issue> {
  const { icon } = service
  if (icon === undefined || !icon.startsWith('/') || Object.hasOwn(files, icon)) return
  const message = `nothing is served at ${icon}; put the picture under files`
  yield error('icon_unknown', document.at(['service', 'icon']), message)
}

/** Longest operation name that clients of models and code generators accept. */
const LONGEST_NAME = 64
/** Characters of two sentences. */
const LONGEST_USE = 300

/** Longer texts are possible in documents, but readers cut or reject them. */
function* checkLengths({ declared, document }: CheckContext): Generator<Issue> {
  for (const { method, path, route, at } of routesOf(declared)) {
    const { length } = route.name ?? nameOf(method, path)
    if (length <= LONGEST_NAME) continue
    const [what, key] =
      route.name === undefined
        ? ['its operationId, which is made of the path,', at]
        : ['its operationId', [...at, 'name']]
    const message = `${what} has ${length} characters; many clients take ${LONGEST_NAME}`
    yield warning('operation_id_long', document.atKey(key), message)
  }
  for (const { entry, at } of entriesOf(declared)) {
    const { length } = entry.use_when ?? ''
    const message = `has ${length} characters; agents read it in every list, so keep it below ${LONGEST_USE}`
    if (length > LONGEST_USE) yield warning('use_when_long', document.at([...at, 'use_when']), message)
  }
}

/** Bytes of a public key by its algorithm: ed25519, and a compressed point of P-384. */
const KEY_BYTES: Readonly<Record<string, number>> = { ed25519: 32, ecdsap384: 49 }

/** Another file at that address would look like a failed proof. */
function* checkRegistryAuth({ declared, document }: CheckContext): Generator<Issue> {
  const text = declared.service.mcp_registry_auth
  if (text === undefined) return
  const [, algorithm = '', encoded = ''] =
    /^v=MCPv1; k=(ed25519|ecdsap384); p=([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const bytes = Buffer.from(encoded, 'base64')
  if (encoded !== '' && bytes.length === KEY_BYTES[algorithm] && bytes.toString('base64') === encoded) return
  const message =
    encoded === ''
      ? 'the line has this form: "v=MCPv1; k=ed25519; p=<the public key in base64>" (or k=ecdsap384)'
      : `a public key of ${algorithm} has ${KEY_BYTES[algorithm]} bytes in base64, and this is another text`
  yield error('registry_auth_invalid', document.at(['service', 'mcp_registry_auth']), message)
}

/** IndexNow: `/<key>.txt` contains its own name and nothing else. */
function* checkKeyFiles({ declared, document, read }: CheckContext): Generator<Issue> {
  for (const [path, entry] of Object.entries(declared.files ?? {})) {
    const name = /^\/([^/]+)\.txt$/.exec(path)?.[1]
    const file = typeof entry === 'string' ? undefined : entry.file
    const text = typeof entry === 'string' ? entry : file && read(file)?.toString('utf8')
    if (name === undefined || text === undefined) continue
    const at = document.atKey(['files', path])
    const isOwnName = text.trim() === name
    if (isOwnName && !KEY.test(name)) {
      const message = `a key for IndexNow has 8 to 128 letters, digits or hyphens: ${name}`
      yield warning('key_file_invalid', at, message)
    } else if (text !== name && (isOwnName || LIKE_A_KEY.test(name))) {
      const message = `${path} looks like a key for IndexNow, whose file holds exactly its name, without a line break: "${name}"`
      yield warning('key_file_differs', at, message)
    }
  }
}

const KEY = /^[A-Za-z0-9-]{8,128}$/
/** Matches generated keys, but not /humans.txt. */
const LIKE_A_KEY = /^(?=.*\d)[0-9a-f-]{16,128}$/i
