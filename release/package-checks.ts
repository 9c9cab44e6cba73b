import { join } from 'node:path'
import { ROOT, type Packed } from './packages.ts'
import { attempt } from './shell.ts'

/** What is in the repository or comes from the build, and no user needs. */
const UNNEEDED: readonly RegExp[] = [
  /^(?:src|test|docs|deploy|release|bundle|examples|project)\//,
  /^catalog\.yaml$/,
  /^dist\/service\//,
  /\.map$/,
  /tsbuildinfo$/,
  /^dist\/.*(?<!\.d)\.ts$/,
  // No export leads to these declarations.
  /^dist\/(?!engine\/).*\.d\.ts$/,
]
const PRESENT = ['LICENSE', 'README.md', 'package.json']

/** Bytes: one and a half times the sizes at the time when the limits were set. A larger package is a decision. */
const LIMITS: Readonly<Record<string, { readonly packed: number; readonly unpacked: number }>> = {
  ratecard: { packed: 2_200_000, unpacked: 9_000_000 },
  'ratecard-buyer': { packed: 850_000, unpacked: 4_000_000 },
  'create-ratecard': { packed: 10_000, unpacked: 20_000 },
}

/** Licences allowed in bundled code: they ask for nothing but their text, which is in LICENSES.txt. */
const LICENCES = new Set(['MIT', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0'])
/** Bills of materials by package; one without an entry bundles nothing. */
const SBOMS: Readonly<Record<string, string>> = {
  ratecard: 'dist/vendor/sbom.json',
  'ratecard-buyer': 'dist/sbom.json',
}

export interface Component {
  readonly name: string
  readonly version: string
  readonly licenses: readonly { readonly expression?: string; readonly license?: { readonly id: string } }[]
}

/** What a package must not have or lacks, one line each. */
export function packageProblems(packed: Packed): string[] {
  return [
    ...fileProblems(packed),
    ...sizeProblems(packed),
    ...licenceProblems(packed),
    ...foreignProblems(packed),
  ]
}

function fileProblems({ files }: Packed): string[] {
  const paths = files.map(({ path }) => path)
  return [
    ...paths
      .filter((path) => UNNEEDED.some((each) => each.test(path)))
      .map((path) => `${path}: no user needs it`),
    ...PRESENT.filter((path) => !paths.includes(path)).map((path) => `${path} is missing`),
  ]
}

function sizeProblems({ manifest: { name }, bytes, unpackedBytes }: Packed): string[] {
  const limits = LIMITS[name]
  if (limits === undefined) return ['has no limit of its size']
  const { packed, unpacked } = limits
  return [
    ...(bytes > packed ? [`${bytes} bytes, more than ${packed}`] : []),
    ...(unpackedBytes > unpacked ? [`${unpackedBytes} bytes unpacked, more than ${unpacked}`] : []),
  ]
}

function licenceProblems(packed: Packed): string[] {
  const path = SBOMS[packed.manifest.name]
  if (path === undefined) return []
  const components = componentsOf(packed, path)
  if (components.length === 0) return [`${path} lists nothing`]
  const texts = contentOf(packed, path.replace('sbom.json', 'LICENSES.txt'))
  return components.flatMap(({ name, version, licenses }) => {
    const ids = licenses.map(({ expression, license }) => expression ?? license?.id ?? 'unknown')
    return [
      ...ids
        .filter((id) => !LICENCES.has(id))
        .map((id) => `${name}: the licence ${id} is not among those allowed`),
      ...(texts.includes(`${name} ${version}\n`)
        ? []
        : [`${name} ${version}: its licence is not in LICENSES.txt`]),
    ]
  })
}

function componentsOf(packed: Packed, path: string): readonly Component[] {
  const text = contentOf(packed, path)
  return text === '' ? [] : (JSON.parse(text) as { readonly components: readonly Component[] }).components
}

/** The content of a file in the tarball; empty when the file is not there. */
function contentOf({ tarball }: Packed, path: string): string {
  return attempt(`tar -xzOf ${tarball} package/${path}`, ROOT).stdout
}

/** What publint and attw say. */
function foreignProblems({ manifest, tarball }: Packed): string[] {
  const bin = join(ROOT, 'node_modules/.bin')
  return [
    `${bin}/publint run ${tarball} --strict`,
    // Programs have nothing to import.
    ...(manifest.exports === undefined ? [] : [`${bin}/attw ${tarball} --profile esm-only`]),
  ].flatMap((command) => {
    const { code, output } = attempt(command, ROOT)
    return code === 0 ? [] : [output]
  })
}
