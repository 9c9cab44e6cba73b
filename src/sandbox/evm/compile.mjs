// Rebuilds the artifacts of the contracts next to it, byte for byte: `npm run token`, which puts the pinned compiler on the PATH.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'

const bin = process.env.PATH?.split(delimiter).find((directory) => existsSync(join(directory, 'solcjs')))
if (bin === undefined) throw new Error('The compiler is not on the PATH; run: npm run token')
const solc = createRequire(join(bin, 'solcjs'))('../solc')

const settings = {
  evmVersion: 'cancun',
  optimizer: { enabled: true, runs: 200 },
  viaIR: true,
  metadata: { appendCBOR: false, bytecodeHash: 'none' },
}
for (const [contract, file] of [
  ['TestUSDC', 'token.json'],
  ['Proxy', 'proxy.json'],
  ['Multicall', 'multicall.json'],
  ['Permit2', 'permit2.json'],
  ['UptoProxy', 'upto-proxy.json'],
  ['Channels', 'channels.json'],
  ['DepositCollector', 'deposit-collector.json'],
  ['PermitCollector', 'permit-collector.json'],
]) {
  const name = `${contract}.sol`
  const source = readFileSync(new URL(name, import.meta.url), 'utf8')
  const output = JSON.parse(
    solc.compile(
      JSON.stringify({
        language: 'Solidity',
        sources: { [name]: { content: source } },
        settings: { ...settings, outputSelection: { '*': { [contract]: ['abi', 'evm.bytecode.object'] } } },
      }),
    ),
  )
  if (output.errors) throw new Error(output.errors.map((error) => error.formattedMessage).join('\n'))

  const { abi, evm } = output.contracts[name][contract]
  const artifact = {
    compiler: solc.version(),
    settings,
    sourceSha256: createHash('sha256').update(source).digest('hex'),
    abi,
    bytecode: `0x${evm.bytecode.object}`,
  }
  writeFileSync(new URL(file, import.meta.url), `${JSON.stringify(artifact, null, 2)}\n`)
}
