#include <config.h>

#include "code_object.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "module.h"

#define MACHINE_AMDGPU      224
#define NOTE_AMDGPU         "AMDGPU"
#define NOTE_METADATA       32
#define BUNDLE_MAGIC        "__CLANG_OFFLOAD_BUNDLE__"
#define BUNDLE_ENTRIES_MOST 256

static int refuse(const char *what, const char *which)
{
    fprintf(stderr, "stand-in: %s%s\n", what, which);
    return STANDIN_INVALID_IMAGE;
}

/* --- msgpack, in which the note is written: values by their place; NULL is nowhere --- */

struct note {
    const unsigned char *data, *end;
};

static uint64_t big_endian(const unsigned char *from, int bytes)
{
    uint64_t number = 0;
    for (int k = 0; k < bytes; k++)
        number = number << 8 | from[k];
    return number;
}

/* One value's head: its kind, the length or number that it states, and how many bytes the head has. */
enum kind { NOTHING, NUMBER, STRING, ARRAY, MAP, OTHER };
struct head {
    enum kind kind;
    uint64_t number;
    size_t bytes, more; /* bytes that follow and belong to the value, those of arrays and maps left out */
};

static struct head head_of(const struct note *note, const unsigned char *at)
{
    size_t left = at == NULL || at >= note->end ? 0 : (size_t)(note->end - at);
    struct head head = {NOTHING, 0, 1, 0};
    if (left == 0)
        return head;
    unsigned char tag = *at;
    static const struct {
        unsigned char tag;
        enum kind kind;
        unsigned char length; /* of the number behind the tag */
    } tags[] = {{0xcc, NUMBER, 1}, {0xcd, NUMBER, 2}, {0xce, NUMBER, 4}, {0xcf, NUMBER, 8}, {0xd0, NUMBER, 1}, {0xd1, NUMBER, 2},
                {0xd2, NUMBER, 4}, {0xd3, NUMBER, 8}, {0xd9, STRING, 1}, {0xda, STRING, 2}, {0xdb, STRING, 4}, {0xdc, ARRAY, 2},
                {0xdd, ARRAY, 4},  {0xde, MAP, 2},    {0xdf, MAP, 4},    {0xc0, OTHER, 0},  {0xc2, OTHER, 0},  {0xc3, OTHER, 0}};
    if (tag < 0x80 || tag >= 0xe0)
        return (struct head){NUMBER, tag, 1, 0};
    if (tag < 0x90)
        return (struct head){MAP, tag & 15, 1, 0};
    if (tag < 0xa0)
        return (struct head){ARRAY, tag & 15, 1, 0};
    if (tag < 0xc0)
        head = (struct head){STRING, tag & 31, 1, tag & 31};
    for (size_t k = 0; tag >= 0xc0 && k < sizeof tags / sizeof tags[0]; k++)
        if (tags[k].tag == tag && left > tags[k].length) {
            head = (struct head){tags[k].kind, big_endian(at + 1, tags[k].length), 1u + tags[k].length, 0};
            head.more = head.kind == STRING ? head.number : 0;
        }
    if (head.more > left - head.bytes)
        head.kind = NOTHING;
    return head;
}

/* The place behind a value. */
static const unsigned char *behind(const struct note *note, const unsigned char *at)
{
    struct head head = head_of(note, at);
    if (head.kind == NOTHING)
        return NULL;
    at += head.bytes + head.more;
    if (head.kind == ARRAY || head.kind == MAP)
        for (uint64_t k = head.number * (head.kind == MAP ? 2 : 1); k != 0 && at != NULL; k--)
            at = behind(note, at);
    return at;
}

static int is_text(const struct note *note, const unsigned char *at, const char *text)
{
    struct head head = head_of(note, at);
    return head.kind == STRING && head.number == strlen(text) && memcmp(at + head.bytes, text, head.number) == 0;
}

static const unsigned char *at_key(const struct note *note, const unsigned char *map, const char *key)
{
    struct head head = head_of(note, map);
    const unsigned char *at = map == NULL ? NULL : map + head.bytes;
    for (uint64_t k = 0; head.kind == MAP && k < head.number && at != NULL; k++) {
        const unsigned char *value = behind(note, at);
        if (is_text(note, at, key))
            return value;
        at = behind(note, value);
    }
    return NULL;
}

static const unsigned char *at_index(const struct note *note, const unsigned char *array, uint64_t index)
{
    struct head head = head_of(note, array);
    if (head.kind != ARRAY || index >= head.number)
        return NULL;
    const unsigned char *at = array + head.bytes;
    while (index-- != 0 && at != NULL)
        at = behind(note, at);
    return at;
}

/* A number; 2^32 - 1 where there is none. */
static unsigned number_at(const struct note *note, const unsigned char *map, const char *key)
{
    const unsigned char *at = at_key(note, map, key);
    struct head head = head_of(note, at);
    return head.kind == NUMBER ? (unsigned)head.number : ~0u;
}

/* --- ELF --- */

static const Elf64_Shdr *sections_of(const struct code_object *code, unsigned *count)
{
    const Elf64_Ehdr *header = (const void *)code->data;
    *count = header->e_shnum;
    if (header->e_shoff > code->size || (code->size - header->e_shoff) / sizeof(Elf64_Shdr) < *count)
        *count = 0;
    return (const void *)(code->data + header->e_shoff);
}

static int find_note(const struct code_object *code, struct note *note)
{
    unsigned count;
    const Elf64_Shdr *sections = sections_of(code, &count);
    for (unsigned k = 0; k < count; k++) {
        const Elf64_Shdr *section = &sections[k];
        if (section->sh_type != SHT_NOTE || section->sh_offset > code->size || section->sh_size > code->size - section->sh_offset)
            continue;
        const unsigned char *at = code->data + section->sh_offset, *end = at + section->sh_size;
        while ((size_t)(end - at) >= sizeof(Elf64_Nhdr)) {
            Elf64_Nhdr head;
            memcpy(&head, at, sizeof head);
            const unsigned char *name = at + sizeof head, *text = name + (head.n_namesz + 3u) / 4 * 4;
            if (text + head.n_descsz > end)
                break;
            if (head.n_type == NOTE_METADATA && head.n_namesz == sizeof NOTE_AMDGPU &&
                memcmp(name, NOTE_AMDGPU, sizeof NOTE_AMDGPU) == 0) {
                *note = (struct note){text, text + head.n_descsz};
                return 1;
            }
            at = text + (head.n_descsz + 3u) / 4 * 4;
        }
    }
    return 0;
}

/* The bytes that a symbol of the dynamic table stands for, or NULL. */
static const unsigned char *find_symbol(const struct code_object *code, const char *name, int type, uint64_t size_least)
{
    unsigned count;
    const Elf64_Shdr *sections = sections_of(code, &count);
    for (unsigned k = 0; k < count; k++) {
        if (sections[k].sh_type != SHT_DYNSYM || sections[k].sh_link >= count)
            continue;
        const Elf64_Sym *symbols = (const void *)(code->data + sections[k].sh_offset);
        const Elf64_Shdr *names = &sections[sections[k].sh_link];
        for (uint64_t s = 0; s < sections[k].sh_size / sizeof *symbols; s++) {
            const Elf64_Sym *symbol = &symbols[s];
            if (symbol->st_name >= names->sh_size || symbol->st_shndx >= count || ELF64_ST_TYPE(symbol->st_info) != type ||
                strcmp((const char *)code->data + names->sh_offset + symbol->st_name, name) != 0)
                continue;
            const Elf64_Shdr *home = &sections[symbol->st_shndx];
            uint64_t offset = symbol->st_value - home->sh_addr + home->sh_offset;
            if (symbol->st_size < size_least || offset > code->size || symbol->st_size > code->size - offset)
                return NULL;
            return code->data + offset;
        }
    }
    return NULL;
}

/* --- picking --- */

/* The processors that generic targets cover (LLVM, "User Guide for AMDGPU Backend"). */
static int is_generic_for(const char *target, size_t length, const char *processor, size_t processor_length)
{
    static const char *const covered[][2] = {{"gfx9-generic", "900 902 904 906 909 90c"},
                                             {"gfx9-4-generic", "940 941 942 950"},
                                             {"gfx10-1-generic", "1010 1011 1012 1013"},
                                             {"gfx10-3-generic", "1030 1031 1032 1033 1034 1035 1036"},
                                             {"gfx11-generic", "1100 1101 1102 1103 1150 1151 1152 1153"},
                                             {"gfx12-generic", "1200 1201"}};
    for (size_t k = 0; k < sizeof covered / sizeof covered[0] && !standin.old_loader; k++)
        if (strlen(covered[k][0]) == length && memcmp(covered[k][0], target, length) == 0)
            for (const char *number = covered[k][1]; number != NULL; number = strchr(number, ' ')) {
                number += *number == ' ';
                if (strcspn(number, " ") == processor_length - 3 && memcmp(number, processor + 3, processor_length - 3) == 0)
                    return 1;
            }
    return 0;
}

/* True if code for `target` runs on `architecture`: "gfx90a:xnack-" on "gfx90a:sramecc+:xnack-". */
static int runs_on(const char *target, size_t length, const char *architecture)
{
    size_t processor = strcspn(architecture, ":"), at = 0;
    while (at < length && target[at] != ':')
        at++;
    if ((at != processor || memcmp(target, architecture, at) != 0) && !is_generic_for(target, at, architecture, processor))
        return 0;
    while (at < length) { /* each feature, its colon included, is one of the device's */
        size_t end = at + 1;
        while (end < length && target[end] != ':')
            end++;
        const char *found = architecture + processor;
        while (*found != '\0') {
            size_t width = 1 + strcspn(found + 1, ":");
            if (width == end - at && memcmp(found, target + at, width) == 0)
                break;
            found += width;
        }
        if (*found == '\0')
            return 0;
        at = end;
    }
    return 1;
}

/* A code object is an ELF file for HSA whose metadata name the very target. */
static int check_code(struct code_object *code, const char *architecture)
{
    static const char system[] = "amdgcn-amd-amdhsa--";
    const Elf64_Ehdr *header = (const void *)code->data;
    struct note note;
    if (code->size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != MACHINE_AMDGPU)
        return refuse("no code object for AMD: ", architecture);
    if (code->size == SIZE_MAX) /* not told: the table of sections ends it */
        code->size = header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr);
    if (!find_note(code, &note))
        return refuse("a code object without metadata: ", architecture);
    const unsigned char *target = at_key(&note, note.data, "amdhsa.target");
    struct head head = head_of(&note, target);
    size_t prefix = sizeof system - 1;
    if (head.kind != STRING || head.number < prefix || memcmp(target + head.bytes, system, prefix) != 0)
        return refuse("metadata without a target: ", architecture);
    if (!runs_on((const char *)target + head.bytes + prefix, head.number - prefix, architecture))
        return STANDIN_NO_BINARY;
    return 0;
}

int code_object_pick(const void *image, const char *architecture, struct code_object *code)
{
    const char *bundle = image, *entry = bundle + strlen(BUNDLE_MAGIC) + sizeof(uint64_t);
    uint64_t entries, place[3]; /* offset, size, length of the name */
    if (memcmp(bundle, ELFMAG, SELFMAG) == 0) {
        *code = (struct code_object){image, SIZE_MAX};
        return check_code(code, architecture);
    }
    if (memcmp(bundle, BUNDLE_MAGIC, strlen(BUNDLE_MAGIC)) != 0)
        return refuse("neither a bundle nor a code object", "");
    memcpy(&entries, bundle + strlen(BUNDLE_MAGIC), sizeof entries);
    for (uint64_t k = 0; k < entries && k < BUNDLE_ENTRIES_MOST; k++) {
        memcpy(place, entry, sizeof place);
        const char *name = entry + sizeof place;
        size_t length = place[2], target = 0;
        while (target < length && strncmp(name + target, "gfx", length - target < 3 ? length - target : 3) != 0)
            target++;
        if (runs_on(name + target, length - target, architecture)) {
            *code = (struct code_object){(const unsigned char *)bundle + place[0], place[1]};
            int error = check_code(code, architecture);
            return error == STANDIN_NO_BINARY ? refuse("an entry of a bundle with another target inside: ", architecture) : error;
        }
        entry = name + length;
    }
    return STANDIN_NO_BINARY;
}

/* --- kernels --- */

/* The descriptor that a packet of the queue points at; the rest is for the processor. */
struct descriptor {
    uint32_t group_segment_bytes, private_segment_bytes, argument_bytes, reserved;
    int64_t code_offset;
    unsigned char more[32];
    uint16_t properties; /* bit 10: waves of 32 lanes */
    unsigned char rest[6];
};
_Static_assert(sizeof(struct descriptor) == 64, "as the processor reads it");

static int read_arguments(const struct note *note, const unsigned char *kernel, struct signature *signature)
{
    const unsigned char *arguments = at_key(note, kernel, ".args"), *argument;
    for (unsigned k = 0; (argument = at_index(note, arguments, k)) != NULL; k++) {
        const unsigned char *kind = at_key(note, argument, ".value_kind");
        struct head head = head_of(note, kind);
        if (head.kind == STRING && head.number > 7 && memcmp(kind + head.bytes, "hidden_", 7) == 0)
            continue;
        if (signature->count == SIGNATURE_ARGUMENTS_MOST)
            return 0;
        signature->offsets[signature->count] = number_at(note, argument, ".offset");
        signature->sizes[signature->count] = number_at(note, argument, ".size");
        signature->count++;
    }
    return 1;
}

int code_object_kernel(const struct code_object *code, const char *name, struct signature *signature)
{
    char descriptor_name[160];
    struct descriptor descriptor;
    struct note note;
    const unsigned char *kernels, *kernel = NULL;
    find_note(code, &note);
    kernels = at_key(&note, note.data, "amdhsa.kernels");
    for (unsigned k = 0; (kernel = at_index(&note, kernels, k)) != NULL; k++)
        if (is_text(&note, at_key(&note, kernel, ".name"), name))
            break;
    snprintf(descriptor_name, sizeof descriptor_name, "%s.kd", name);
    const unsigned char *found = find_symbol(code, descriptor_name, STT_OBJECT, sizeof descriptor);
    if (kernel == NULL && found == NULL)
        return STANDIN_NOT_FOUND;
    if (kernel == NULL || found == NULL || find_symbol(code, name, STT_FUNC, 1) == NULL)
        return refuse("without code, descriptor or metadata: ", name);
    if (!is_text(&note, at_key(&note, kernel, ".symbol"), descriptor_name))
        return refuse("with another's descriptor: ", name);

    memset(signature, 0, sizeof *signature);
    signature->bytes = number_at(&note, kernel, ".kernarg_segment_size");
    signature->threads_most = number_at(&note, kernel, ".max_flat_workgroup_size");
    signature->lanes = number_at(&note, kernel, ".wavefront_size");
    signature->shared_bytes = number_at(&note, kernel, ".group_segment_fixed_size");
    if (!read_arguments(&note, kernel, signature))
        return refuse("with too many arguments: ", name);
    memcpy(&descriptor, found, sizeof descriptor);
    if (descriptor.group_segment_bytes != signature->shared_bytes || descriptor.argument_bytes != signature->bytes ||
        (descriptor.properties >> 10 & 1) != (signature->lanes == 32))
        return refuse("whose descriptor and metadata differ: ", name);
    return 0;
}
