/** What a bundle contains: its packages, their licences and the bill of materials. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

const readJson = (path) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))

/** The packages in a metafile of esbuild, by name. */
function packagesIn({ inputs }) {
  const { packages: locked } = readJson('package-lock.json')
  const folders = new Set(
    Object.keys(inputs).flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  )
  return [...folders].toSorted().map((folder) => {
    const { name, version, license } = readJson(`${folder}/package.json`)
    return { folder, name, version, license, integrity: locked[folder]?.integrity }
  })
}

function licenceText({ folder, name, version, license }) {
  const file = readdirSync(join(ROOT, folder)).find((each) => /^licen[cs]e/i.test(each))
  const text =
    file === undefined ? `Licence: ${license}` : readFileSync(join(ROOT, folder, file), 'utf8').trim()
  return `${name} ${version}\n\n${text}\n`
}

/** A component of CycloneDX 1.6. */
function componentOf({ name, version, license, integrity }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const [algorithm, digest] = integrity?.split('-') ?? []
  const hash = { alg: 'SHA-512', content: Buffer.from(digest ?? '', 'base64').toString('hex') }
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(algorithm === 'sha512' && { hashes: [hash] }),
    licenses: [/[ (]/.test(license) ? { expression: license } : { license: { id: license } }],
  }
}

/** Writes LICENSES.txt and sbom.json of a bundle next to it. */
export function describeBundle(metafile, { directory, manifest }) {
  const packages = packagesIn(metafile)
  const { name, version, license } = readJson(manifest)
  const sbom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', name, version, licenses: [{ license: { id: license } }] } },
    components: packages.map(componentOf),
  }
  writeFileSync(join(directory, 'LICENSES.txt'), packages.map(licenceText).join(`\n${'-'.repeat(80)}\n\n`))
  writeFileSync(join(directory, 'sbom.json'), `${JSON.stringify(sbom, null, 2)}\n`)
}
