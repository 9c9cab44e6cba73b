// Rebuilds token.json from TestUSDC.sol, byte for byte: `npm run token`, which puts the pinned compiler on the PATH.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'

const bin = process.env.PATH?.split(delimiter).find((directory) => existsSync(join(directory, 'solcjs')))
if (bin === undefined) throw new Error('The compiler is not on the PATH; run: npm run token')
const solc = createRequire(join(bin, 'solcjs'))('../solc')

const source = readFileSync(new URL('TestUSDC.sol', import.meta.url), 'utf8')
const settings = {
  evmVersion: 'cancun',
  optimizer: { enabled: true, runs: 200 },
  viaIR: true,
  metadata: { appendCBOR: false, bytecodeHash: 'none' },
}
const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: 'Solidity',
      sources: { 'TestUSDC.sol': { content: source } },
      settings: { ...settings, outputSelection: { '*': { TestUSDC: ['abi', 'evm.bytecode.object'] } } },
    }),
  ),
)
if (output.errors) throw new Error(output.errors.map((error) => error.formattedMessage).join('\n'))

const { abi, evm } = output.contracts['TestUSDC.sol'].TestUSDC
const artifact = {
  compiler: solc.version(),
  settings,
  sourceSha256: createHash('sha256').update(source).digest('hex'),
  abi,
  bytecode: `0x${evm.bytecode.object}`,
}
writeFileSync(new URL('token.json', import.meta.url), `${JSON.stringify(artifact, null, 2)}\n`)
