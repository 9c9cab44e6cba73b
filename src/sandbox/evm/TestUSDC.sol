// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IERC1271 {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// @title Money without value, for a chain that lives on one machine.
/// @notice Answers a payment as USDC does (ERC-20, EIP-2612, EIP-3009, ERC-1271) down to the revert strings, because the code that
/// reads them must not notice the difference. Left out: roles. Anyone may mint, blacklist and pause.
contract TestUSDC {
    uint8 public constant decimals = 6;
    string public constant symbol = "USDC";

    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
        keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
    bytes32 public constant PERMIT_TYPEHASH =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    uint256 private constant HALF_CURVE_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    // Immutables live in the code, not in storage: code copied to another address keeps its name and version.
    bytes32 private immutable packedName;
    bytes32 private immutable packedVersion;
    bytes32 private immutable nameHash;
    bytes32 private immutable versionHash;

    bool public paused;
    uint256 public totalSupply;
    /// A balance, with the blacklist in its highest bit: one slot for each account, as in FiatTokenV2_2, so that a
    /// payment costs the gas it costs there.
    mapping(address => uint256) private balanceAndBlacklistState;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    /// Of permits (EIP-2612): the next one of each account.
    mapping(address => uint256) public nonces;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    uint256 private constant BLACKLISTED = 1 << 255;

    modifier whenNotPaused() {
        require(!paused, "Pausable: paused");
        _;
    }

    modifier notBlacklisted(address account) {
        require(!isBlacklisted(account), "Blacklistable: account is blacklisted");
        _;
    }

    /// @param name_ EIP-712 name, at most 31 bytes, padded with zeros on the right; the same holds for the version.
    constructor(bytes32 name_, bytes32 version_) {
        packedName = name_;
        packedVersion = version_;
        nameHash = keccak256(bytes(unpack(name_)));
        versionHash = keccak256(bytes(unpack(version_)));
    }

    function balanceOf(address account) public view returns (uint256) {
        return balanceAndBlacklistState[account] & ~BLACKLISTED;
    }

    function isBlacklisted(address account) public view returns (bool) {
        return balanceAndBlacklistState[account] >= BLACKLISTED;
    }

    function name() public view returns (string memory) {
        return unpack(packedName);
    }

    function version() public view returns (string memory) {
        return unpack(packedVersion);
    }

    /// @notice Computed on every call, since the same code serves at another address and on another chain id.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN_TYPEHASH, nameHash, versionHash, block.chainid, address(this))
        );
    }

    // What only a test token has

    function mint(address to, uint256 value) external {
        require(to != address(0), "ERC20: mint to the zero address");
        totalSupply += value;
        balanceAndBlacklistState[to] += value;
        emit Transfer(address(0), to, value);
    }

    function blacklist(address account) external {
        balanceAndBlacklistState[account] |= BLACKLISTED;
    }

    function unBlacklist(address account) external {
        balanceAndBlacklistState[account] &= ~BLACKLISTED;
    }

    function pause() external {
        paused = true;
    }

    function unpause() external {
        paused = false;
    }

    // ERC-20

    function transfer(address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        move(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(spender)
        returns (bool)
    {
        grant(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(from)
        notBlacklisted(to)
        returns (bool)
    {
        require(value <= allowance[from][msg.sender], "ERC20: transfer amount exceeds allowance");
        move(from, to, value);
        allowance[from][msg.sender] -= value;
        return true;
    }

    // EIP-2612

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
    {
        permit(owner, spender, value, deadline, abi.encodePacked(r, s, v));
    }

    function permit(address owner, address spender, uint256 value, uint256 deadline, bytes memory signature)
        public
        whenNotPaused
        notBlacklisted(owner)
        notBlacklisted(spender)
    {
        require(deadline == type(uint256).max || deadline >= block.timestamp, "FiatTokenV2: permit is expired");
        bytes32 message = keccak256(abi.encode(PERMIT_TYPEHASH, owner, spender, value, nonces[owner]++, deadline));
        require(isSignedBy(owner, message, signature), "EIP2612: invalid signature");
        grant(owner, spender, value);
    }

    function grant(address owner, address spender, uint256 value) private {
        require(owner != address(0), "ERC20: approve from the zero address");
        require(spender != address(0), "ERC20: approve to the zero address");
        allowance[owner][spender] = value;
        emit Approval(owner, spender, value);
    }

    // EIP-3009

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        bytes32 kind = TRANSFER_WITH_AUTHORIZATION_TYPEHASH;
        redeem(kind, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        receiveWithAuthorization(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        require(to == msg.sender, "FiatTokenV2: caller must be the payee");
        bytes32 kind = RECEIVE_WITH_AUTHORIZATION_TYPEHASH;
        redeem(kind, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external {
        cancelAuthorization(authorizer, nonce, abi.encodePacked(r, s, v));
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) public whenNotPaused {
        requireUnused(authorizer, nonce);
        requireSignature(authorizer, keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce)), signature);
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    // The order of the checks is part of the behaviour: it decides which reason a transfer with two faults reports.
    function redeem(
        bytes32 kind,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
        requireUnused(from, nonce);
        requireSignature(
            from, keccak256(abi.encode(kind, from, to, value, validAfter, validBefore, nonce)), signature
        );
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        move(from, to, value);
    }

    function move(address from, address to, uint256 value) private {
        require(from != address(0), "ERC20: transfer from the zero address");
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= balanceOf(from), "ERC20: transfer amount exceeds balance");
        balanceAndBlacklistState[from] -= value;
        balanceAndBlacklistState[to] += value;
        emit Transfer(from, to, value);
    }

    function requireUnused(address authorizer, bytes32 nonce) private view {
        require(!authorizationState[authorizer][nonce], "FiatTokenV2: authorization is used or canceled");
    }

    function requireSignature(address signer, bytes32 structHash, bytes memory signature) private view {
        require(isSignedBy(signer, structHash, signature), "FiatTokenV2: invalid signature");
    }

    function isSignedBy(address signer, bytes32 structHash, bytes memory signature) private view returns (bool) {
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), structHash));
        return signer.code.length == 0
            ? recover(digest, signature) == signer
            : contractApproves(signer, digest, signature);
    }

    function recover(bytes32 digest, bytes memory signature) private pure returns (address signer) {
        require(signature.length == 65, "ECRecover: invalid signature length");
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        require(uint256(s) <= HALF_CURVE_ORDER, "ECRecover: invalid signature 's' value");
        require(v == 27 || v == 28, "ECRecover: invalid signature 'v' value");
        signer = ecrecover(digest, v, r, s);
        require(signer != address(0), "ECRecover: invalid signature");
    }

    function contractApproves(address wallet, bytes32 digest, bytes memory signature) private view returns (bool) {
        (bool success, bytes memory answer) =
            wallet.staticcall(abi.encodeCall(IERC1271.isValidSignature, (digest, signature)));
        return success && answer.length >= 32
            && abi.decode(answer, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
    }

    function unpack(bytes32 packed) private pure returns (string memory) {
        uint256 length;
        while (length < 32 && packed[length] != 0) length++;
        bytes memory text = new bytes(length);
        for (uint256 i; i < length; i++) text[i] = packed[i];
        return string(text);
    }
}
